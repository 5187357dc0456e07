//! Owns the column of a table over several files: numbers of one definition and statistic only.

use super::definition::{Definition, Different};
use super::form::{Metric, Number, Stat};

/// Numbers that may stand below each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// What they are of.
    pub metric: Metric,
    /// Which statistic.
    pub stat: Stat,
    /// What all of them mean.
    pub definition: Definition,
    values: Vec<f64>,
}

/// Why a number does not go into a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Its tool means another thing.
    Definition(Different),
    /// It is another metric or statistic.
    Kind,
}

impl Column {
    /// A column that begins with this number.
    pub fn of(number: &Number) -> Self {
        Column {
            metric: number.metric,
            stat: number.stat,
            definition: number.definition,
            values: number.known().into_iter().collect(),
        }
    }

    /// Puts a further number below; a withheld one adds nothing.
    ///
    /// # Errors
    /// Where it is of another definition, metric or statistic.
    pub fn push(&mut self, number: &Number) -> Result<(), Refused> {
        if number.metric != self.metric || number.stat != self.stat {
            return Err(Refused::Kind);
        }
        self.definition
            .same_as(number.definition)
            .map_err(Refused::Definition)?;
        self.values.extend(number.known());
        Ok(())
    }

    /// How many values.
    pub fn n(&self) -> usize {
        self.values.len()
    }

    /// Smallest and largest.
    pub fn ends(&self) -> Option<(f64, f64)> {
        let low = self.values.iter().copied().reduce(f64::min);
        low.zip(self.values.iter().copied().reduce(f64::max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::definition as means;

    fn number(definition: Definition, value: f64) -> Number {
        Number {
            metric: Metric::SystemOutput,
            stat: Stat::Value,
            value: Ok(value),
            definition,
            field: "output_throughput".into(),
        }
    }

    #[test]
    fn a_column_takes_one_definition_and_refuses_another() {
        let mut column = Column::of(&number(means::OUTPUT_RUN, 92.0));
        assert_eq!(column.push(&number(means::OUTPUT_RUN, 145.0)), Ok(()));
        let refused = column.push(&number(means::OUTPUT_STEADY_CHUNKS, 26.0));
        assert!(
            matches!(refused, Err(Refused::Definition(_))),
            "{refused:?}"
        );
        assert_eq!((column.n(), column.ends()), (2, Some((92.0, 145.0))));
        let other = Number {
            metric: Metric::SystemPeak,
            ..number(means::OUTPUT_RUN, 1.0)
        };
        assert_eq!(column.push(&other), Err(Refused::Kind));
    }
}
