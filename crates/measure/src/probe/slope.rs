//! Owns the slope of a time over output lengths: its order-statistic interval and its residuals.

use serde::Serialize;

/// Standard deviations of Kendall's S on each side of its centre that the interval spans: 98 %
/// where the noise is alike at all lengths. Where it grows with the length, as in a server whose
/// speed differs from request to request, the same ranks still hold the truth in 95 %: simulated.
const INTERVAL_DEVIATIONS: f64 = 2.326;
/// A rank correlation of residuals and order this many deviations from none is a drift (p 0.01).
const DRIFT_DEVIATIONS: f64 = 2.576;

/// One request as the fit sees it. Points are in the order in which they were sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Which of the lengths was asked for: points of one group are never compared.
    pub group: usize,
    /// Output, counted.
    pub x: f64,
    /// Seconds.
    pub y: f64,
}

/// The slope: the median over all pairs of points with different lengths (Theil–Sen), which two
/// stalled requests among eighteen do not move.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Slope {
    /// Seconds for one more unit of output.
    pub value: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end of its interval.
    pub high: f64,
    /// Points it rests on.
    pub n: u64,
}

impl Slope {
    /// Half of the interval's width over the value.
    pub fn relative_half_width(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.value.abs()
    }
}

/// How well the line holds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Residuals {
    /// Seconds at no output: the median of what is left of each point.
    pub intercept: f64,
    /// Median distance from the line, in seconds.
    pub median: f64,
    /// Largest distance from the line, in seconds.
    pub largest: f64,
    /// How far the middle length lies off the line through the outer ones, as a share of the rise.
    pub bend: f64,
    /// Rank correlation (Kendall's tau) of what is left with the order of sending.
    pub order_tau: f64,
    /// That correlation is more than chance: the server or the path changed meanwhile.
    pub drift: bool,
    /// By how much it changed over the experiment, as a share of the rise.
    pub drift_share: f64,
}

/// The slope of `y` over `x`; none without pairs to compare.
pub fn slope(points: &[Point]) -> Option<Slope> {
    let mut slopes = pairs(points)
        .filter(|(one, other)| one.group != other.group && one.x != other.x)
        .map(|(one, other)| (other.y - one.y) / (other.x - one.x))
        .collect::<Vec<f64>>();
    slopes.sort_by(f64::total_cmp);
    let value = median(&slopes)?;
    let reach = INTERVAL_DEVIATIONS * deviation(points);
    let all = slopes.len() as f64;
    let outside = ((all - reach) / 2.0).floor().max(1.0) as usize;
    let low = *slopes.get(outside - 1)?;
    let high = *slopes.get(slopes.len().checked_sub(outside)?)?;
    Some(Slope {
        value,
        low,
        high,
        n: points.len() as u64,
    })
}

/// Shares outside of these are not looked for.
const SHARES: [f64; 2] = [-2.0, 3.0];
/// Halvings of the range in which an end of a share is looked for: to 0.00002.
const HALVINGS: u32 = 18;

/// The share of one slope in another, of two times of the same requests: every share `s` for which
/// the slope of `part − s · whole` may be zero (Fieller's way). What makes a request slow makes
/// both of its times long, and so widens this far less than the two slopes; the slope of `whole`
/// must be above zero.
pub fn share(part: &[Point], whole: &[Point]) -> Option<[f64; 2]> {
    let less = |share: f64| {
        let pairs = part.iter().zip(whole);
        let points: Vec<Point> = pairs
            .map(|(part, whole)| Point {
                y: part.y - share * whole.y,
                ..*part
            })
            .collect();
        slope(&points)
    };
    let end = |is_below: &dyn Fn(&Slope) -> bool| {
        let [mut low, mut high] = SHARES;
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            match is_below(&less(middle)?) {
                true => low = middle,
                false => high = middle,
            }
        }
        Some((low + high) / 2.0)
    };
    Some([
        end(&|slope| slope.low > 0.0)?,
        end(&|slope| slope.high >= 0.0)?,
    ])
}

/// What the line leaves of each point.
pub fn residuals(points: &[Point], slope: &Slope) -> Option<Residuals> {
    let mut lefts: Vec<f64> = points.iter().map(|p| p.y - slope.value * p.x).collect();
    let in_order = lefts.clone();
    lefts.sort_by(f64::total_cmp);
    let intercept = median(&lefts)?;
    let mut distances: Vec<f64> = lefts.iter().map(|left| (left - intercept).abs()).collect();
    distances.sort_by(f64::total_cmp);
    let (least, most) = (least(points)?, most(points)?);
    let rise = (slope.value * (most - least)).abs();
    let (tau, drift) = order_correlation(&in_order);
    let each = (1..in_order.len()).flat_map(|to| (0..to).map(move |from| (from, to)));
    let mut steps: Vec<f64> = each
        .map(|(from, to)| (in_order[to] - in_order[from]) / (to - from) as f64)
        .collect();
    steps.sort_by(f64::total_cmp);
    let drifted = median(&steps)? * (points.len() as f64 - 1.0);
    Some(Residuals {
        intercept,
        median: median(&distances)?,
        largest: *distances.last()?,
        bend: bend(points)? / rise,
        order_tau: tau,
        drift,
        drift_share: drifted.abs() / rise,
    })
}

/// How far the middle group's median lies from the line through the medians of the outer groups.
fn bend(points: &[Point]) -> Option<f64> {
    let of = |group: usize| {
        let mut xs: Vec<f64> = Vec::new();
        let mut ys: Vec<f64> = Vec::new();
        for point in points.iter().filter(|point| point.group == group) {
            xs.push(point.x);
            ys.push(point.y);
        }
        xs.sort_by(f64::total_cmp);
        ys.sort_by(f64::total_cmp);
        median(&xs).zip(median(&ys))
    };
    let ((x0, y0), (x1, y1), (x2, y2)) = (of(0)?, of(1)?, of(2)?);
    Some((y1 - (y0 + (y2 - y0) * (x1 - x0) / (x2 - x0))).abs())
}

fn least(points: &[Point]) -> Option<f64> {
    points.iter().map(|point| point.x).min_by(f64::total_cmp)
}

fn most(points: &[Point]) -> Option<f64> {
    points.iter().map(|point| point.x).max_by(f64::total_cmp)
}

fn pairs(points: &[Point]) -> impl Iterator<Item = (&Point, &Point)> {
    points
        .iter()
        .enumerate()
        .flat_map(|(index, one)| points[index + 1..].iter().map(move |other| (one, other)))
}

/// The standard deviation of Kendall's S under no trend, for groups within which nothing compares.
fn deviation(points: &[Point]) -> f64 {
    let term = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let groups = points.iter().map(|point| point.group).max().unwrap_or(0);
    let tied: f64 = (0..=groups)
        .map(|group| points.iter().filter(|p| p.group == group).count() as f64)
        .map(term)
        .sum();
    ((term(points.len() as f64) - tied) / 18.0).sqrt()
}

/// Kendall's tau of values with their order, and whether it is beyond chance.
fn order_correlation(values: &[f64]) -> (f64, bool) {
    let n = values.len() as f64;
    let mut sum = 0.0;
    for (index, one) in values.iter().enumerate() {
        for other in &values[index + 1..] {
            sum += match other.total_cmp(one) {
                std::cmp::Ordering::Greater => 1.0,
                std::cmp::Ordering::Equal => 0.0,
                std::cmp::Ordering::Less => -1.0,
            };
        }
    }
    let pairs = n * (n - 1.0) / 2.0;
    let deviation = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    (sum / pairs, sum.abs() > DRIFT_DEVIATIONS * deviation)
}

/// The median of sorted values, between the two in the middle where their number is even.
pub fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        _ if sorted.is_empty() => None,
        1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points of three groups in turn, with `off` added to each.
    fn points(off: impl Fn(usize) -> f64) -> Vec<Point> {
        (0..18)
            .map(|index| {
                let group = index % 3;
                let x = [16.0, 64.0, 256.0][group];
                Point {
                    group,
                    x,
                    y: 0.1 + 0.01 * x + off(index),
                }
            })
            .collect()
    }

    #[test]
    fn a_line_has_its_slope_exactly_and_leaves_nothing() {
        let line = points(|_| 0.0);
        let found = slope(&line).expect("a slope");
        assert!((found.value - 0.01).abs() < 1e-12);
        assert!((found.high - found.low) < 1e-12);
        let left = residuals(&line, &found).expect("residuals");
        assert!((left.intercept - 0.1).abs() < 1e-12 && left.largest < 1e-12);
        assert!(left.bend < 1e-9);
    }

    #[test]
    fn two_stalled_requests_of_eighteen_do_not_move_it() {
        let stalled = points(|index| if index == 4 || index == 11 { 5.0 } else { 0.0 });
        let found = slope(&stalled).expect("a slope");
        assert!((found.value - 0.01).abs() < 1e-12, "{found:?}");
        assert!(found.low <= 0.01 && 0.01 <= found.high);
    }

    #[test]
    fn the_interval_takes_the_ranks_of_kendalls_law() {
        // Groups of one: n 3, three pairs, S has a deviation of sqrt(66/18); all pairs are inside.
        let few: Vec<Point> = points(|index| index as f64).into_iter().take(3).collect();
        let found = slope(&few).expect("a slope");
        let by_hand: Vec<f64> = vec![0.01 + 1.0 / 48.0, 0.01 + 1.0 / 192.0, 0.01 + 2.0 / 240.0];
        assert!((found.low - by_hand[1]).abs() < 1e-12);
        assert!((found.high - by_hand[0]).abs() < 1e-12);
        assert!((found.value - by_hand[2]).abs() < 1e-12);
    }

    #[test]
    fn a_share_is_known_well_where_both_slopes_are_known_badly() {
        let noisy = points(|index| 0.9 * [0.0, 0.7, 1.0, 0.2, 0.5][index % 5]);
        let held: Vec<Point> = noisy
            .iter()
            .map(|point| Point {
                y: point.y - 0.001,
                ..*point
            })
            .collect();
        let at_once = points(|index| -0.01 * [16.0, 64.0, 256.0][index % 3]);
        let slope = slope(&noisy).expect("a slope");
        assert!(slope.relative_half_width() > 0.05, "{slope:?}");
        let of = |part: &[Point]| share(part, &noisy).expect("a share");
        let ([low, high], [least, most]) = (of(&held), of(&at_once));
        assert!(
            (low - 1.0).abs() < 1e-4 && (high - 1.0).abs() < 1e-4,
            "{low} {high}"
        );
        assert!(least.abs() < 1e-4 && most.abs() < 1e-4, "{least} {most}");
    }

    #[test]
    fn a_drift_shows_in_the_order_and_not_in_the_slope() {
        let drifting = points(|index| 0.02 * index as f64);
        let found = slope(&drifting).expect("a slope");
        let left = residuals(&drifting, &found).expect("residuals");
        assert!(left.drift && left.order_tau > 0.8, "{left:?}");
        assert!((found.value - 0.01).abs() < 0.001, "{found:?}");
        assert!(
            (left.drift_share - 0.02 * 17.0 / 2.4).abs() < 0.02,
            "{left:?}"
        );
    }

    #[test]
    fn a_bent_line_says_by_how_much() {
        let bent = points(|index| if index % 3 == 1 { 0.24 } else { 0.0 });
        let found = slope(&bent).expect("a slope");
        let left = residuals(&bent, &found).expect("residuals");
        assert!(
            (left.bend - 0.24 / (240.0 * found.value)).abs() < 1e-9,
            "{left:?}"
        );
    }
}
