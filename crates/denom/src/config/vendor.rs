//! Owns what is known of public vendors by their host: the API they speak and where their key is.

use measure::api::{Api, Key};

/// A vendor whose host is known.
#[derive(Debug)]
struct Vendor {
    /// The host, or its end with a dot in front.
    host: &'static str,
    /// The API of a URL without a route.
    api: Api,
    /// Environment variables that usually hold its key.
    variables: &'static [&'static str],
    /// The header of its key, where it is another than its API's.
    header: Option<&'static str>,
}

const fn openai(host: &'static str, variables: &'static [&'static str]) -> Vendor {
    Vendor {
        host,
        api: Api::OpenaiChat,
        variables,
        header: None,
    }
}

const VENDORS: &[Vendor] = &[
    openai("api.openai.com", &["OPENAI_API_KEY"]),
    Vendor {
        header: Some("api-key"),
        ..openai(".openai.azure.com", &["AZURE_OPENAI_API_KEY"])
    },
    openai("api.groq.com", &["GROQ_API_KEY"]),
    openai("api.mistral.ai", &["MISTRAL_API_KEY"]),
    openai("api.deepseek.com", &["DEEPSEEK_API_KEY"]),
    openai("openrouter.ai", &["OPENROUTER_API_KEY"]),
    openai("api.together.xyz", &["TOGETHER_API_KEY"]),
    openai("api.together.ai", &["TOGETHER_API_KEY"]),
    openai("api.fireworks.ai", &["FIREWORKS_API_KEY"]),
    openai("api.x.ai", &["XAI_API_KEY"]),
    openai(".aliyuncs.com", &["DASHSCOPE_API_KEY"]),
    openai("api.moonshot.ai", &["MOONSHOT_API_KEY"]),
    openai("api.moonshot.cn", &["MOONSHOT_API_KEY"]),
    Vendor {
        api: Api::Anthropic,
        ..openai("api.anthropic.com", &["ANTHROPIC_API_KEY"])
    },
    Vendor {
        api: Api::Gemini,
        ..openai(
            "generativelanguage.googleapis.com",
            &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        )
    },
    Vendor {
        api: Api::Ollama,
        ..openai("ollama.com", &["OLLAMA_API_KEY"])
    },
];

fn vendor(host: &str) -> Option<&'static Vendor> {
    let host = host.to_ascii_lowercase();
    VENDORS
        .iter()
        .find(|vendor| match vendor.host.strip_prefix('.') {
            Some(_) => host.ends_with(vendor.host),
            None => host == vendor.host,
        })
}

/// The API of a URL at `host` that names no route.
pub fn api(host: &str) -> Option<Api> {
    vendor(host).map(|vendor| vendor.api)
}

/// Where the key for `api` at `host` is, and where it goes. The key of one vendor is never taken
/// for another known one.
pub fn key(host: &str, api: Api) -> Key {
    let usual = api.dialect().key;
    let Some(vendor) = vendor(host) else {
        return usual;
    };
    let (header, scheme) = match vendor.header {
        Some(header) => (header, ""),
        None => (usual.header, usual.scheme),
    };
    Key {
        variables: vendor.variables,
        header,
        scheme,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vendors_key_goes_to_that_vendor_only() {
        let names = |host, api| key(host, api).variables[0];
        assert_eq!(names("api.groq.com", Api::OpenaiChat), "GROQ_API_KEY");
        assert_eq!(names("localhost", Api::OpenaiChat), "OPENAI_API_KEY");
        assert_eq!(names("localhost", Api::Anthropic), "ANTHROPIC_API_KEY");
        assert_eq!(
            names("api.groq.com.example", Api::OpenaiChat),
            "OPENAI_API_KEY"
        );
        let azure = key("me.openai.azure.com", Api::OpenaiChat);
        assert_eq!((azure.header, azure.scheme), ("api-key", ""));
        let compatible = key("generativelanguage.googleapis.com", Api::OpenaiChat);
        assert_eq!(
            (compatible.variables[0], compatible.header),
            ("GEMINI_API_KEY", "authorization")
        );
        assert_eq!(api("API.Anthropic.com"), Some(Api::Anthropic));
        assert_eq!(api("h"), None);
    }
}
