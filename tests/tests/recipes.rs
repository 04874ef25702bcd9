//! The recipes of `docs/rules.md`, each started on both programs and asked what stands under
//! "Try it".

use std::{fs, panic};

use ballast_tests::origin::answer;
use ballast_tests::{
    Client, Launch, Origin, Program, Proxy, Request, Response, RuntimeApi, free_port, repository,
};
use regex::Regex;

/// What the recipes assume.
const DEFAULTS: &str = "\
defaults
    mode http
    timeout connect 20s
    timeout client 20s
    timeout server 20s
";

/// One recipe: its configuration, its files, and what is tried.
#[derive(Debug, Default)]
struct Recipe {
    title: String,
    configuration: String,
    /// Names within `/etc/haproxy`, and contents.
    files: Vec<(String, String)>,
    trials: Vec<String>,
}

/// The recipes of the document, in order.
fn recipes(document: &str) -> Vec<Recipe> {
    let mut recipes: Vec<Recipe> = Vec::new();
    let mut block: Option<(&str, String)> = None;
    for line in document.lines() {
        if let Some((kind, text)) = &mut block {
            if line != "```" {
                text.push_str(line);
                text.push('\n');
                continue;
            }
            if let Some(recipe) = recipes.last_mut() {
                match kind.split_once(" /etc/haproxy/") {
                    Some((_, name)) => recipe.files.push((name.to_owned(), text.clone())),
                    None if *kind == "haproxy" => recipe.configuration.push_str(text),
                    None => {
                        assert_eq!(*kind, "trial", "a block of an unknown kind");
                        recipe.trials.extend(text.lines().map(str::to_owned));
                    }
                }
            }
            block = None;
        } else if let Some(kind) = line.strip_prefix("```") {
            block = Some((kind, String::new()));
        } else if let Some(title) = line.strip_prefix("### ") {
            recipes.push(Recipe {
                title: title.to_owned(),
                ..Recipe::default()
            });
        }
    }
    recipes
}

/// Tells who answers and what it got, with the status that the query asks for.
fn echo(name: &str, request: &Request) -> Vec<u8> {
    let asked = request.target().split("status=").nth(1);
    let status: u16 = asked.map_or(200, |asked| asked.parse().expect("a status"));
    let mut body = format!("from {name}\n{}\n", request.line);
    for (field, value) in &request.headers {
        body.push_str(&format!("{}: {value}\n", field.to_lowercase()));
    }
    body.push_str(&String::from_utf8_lossy(&request.body));
    answer(status, &body)
}

/// A recipe that runs.
struct Running {
    proxy: Proxy,
    port: u16,
    _origins: Vec<Origin>,
}

impl Running {
    fn start(program: &Program, recipe: &Recipe) -> Self {
        let address = Regex::new(r"10\.0\.0\.\d+:8080").expect("a pattern");
        let port = free_port();
        let mut text = recipe.configuration.replace("/etc/haproxy/", "");
        text = text.replace("bind :80\n", &format!("bind 127.0.0.1:{port}\n"));
        let mut names: Vec<String> = address
            .find_iter(&text)
            .map(|found| found.as_str().to_owned())
            .collect();
        names.sort_unstable();
        names.dedup();
        let mut origins = Vec::new();
        for name in names {
            let shown = name.replace(":8080", "");
            let origin = Origin::start(move |request| echo(&shown, request));
            text = text.replace(&name, &format!("127.0.0.1:{}", origin.port()));
            origins.push(origin);
        }
        let global = "global\n    stats socket unix@command.sock level admin\n    nbthread 1\n";
        let files: Vec<(&str, &str)> = recipe
            .files
            .iter()
            .map(|(name, content)| (&name[..], &content[..]))
            .collect();
        let launch = Launch {
            files: &files,
            ports: &[port],
            ..Launch::default()
        };
        let text = format!("{global}{DEFAULTS}{text}");
        let proxy = Proxy::launch(program, &text, &launch);
        Self {
            proxy,
            port,
            _origins: origins,
        }
    }

    fn try_line(&self, line: &str) -> Result<(), String> {
        if let Some(command) = line.strip_prefix("> ") {
            let command = command.replace("/etc/haproxy/", "");
            let api = RuntimeApi::at(self.proxy.directory().join("command.sock"));
            let answer = api.ask(&command);
            return match answer.trim() {
                "" => Ok(()),
                refused => Err(format!("{command}: {refused}")),
            };
        }
        let (request, expected) = line.split_once("=>").ok_or("a trial without =>")?;
        let (count, request) = match request.split_once(" x ") {
            Some((count, rest)) if count.chars().all(|c| c.is_ascii_digit()) => {
                (count.parse().expect("digits"), rest)
            }
            _ => (1, request),
        };
        for _ in 0..count {
            let response = self.ask(request);
            check(response.as_ref(), expected).map_err(|why| format!("{why}; got {response:?}"))?;
        }
        Ok(())
    }

    /// Sends a request on a connection of its own. `None`: it was closed without a response.
    fn ask(&self, line: &str) -> Option<Response> {
        let mut parts = parts(line);
        let first = parts.next().expect("a request line");
        let mut head = format!("{first} HTTP/1.1\r\n");
        let (mut body, mut has_host, mut has_length) = ("", false, false);
        for part in parts {
            match quoted(part) {
                Some(text) => body = text,
                None => {
                    has_host |= part.starts_with("Host:");
                    has_length |= part.starts_with("Content-Length:");
                    head.push_str(&format!("{part}\r\n"));
                }
            }
        }
        if !has_host {
            head.push_str("Host: www.example\r\n");
        }
        if !body.is_empty() && !has_length {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        // A connection that is refused may break before it was seen open, or before the request was sent.
        let mut client = Client::try_connect(self.port).ok()?;
        client.try_send(format!("{head}\r\n{body}")).ok()?;
        client.try_response(false).ok()
    }
}

/// The parts of one side of a trial: two blanks divide them.
fn parts(line: &str) -> impl Iterator<Item = &str> {
    line.split("  ")
        .map(str::trim)
        .filter(|part| !part.is_empty())
}

fn quoted(part: &str) -> Option<&str> {
    part.strip_prefix('"')?.strip_suffix('"')
}

/// Compares a response with the right side of a trial.
fn check(response: Option<&Response>, expected: &str) -> Result<(), String> {
    let mut parts = parts(expected);
    let status = parts.next().ok_or("no status is expected")?;
    let Some(response) = response else {
        return match status {
            "closed" => Ok(()),
            _ => Err("the connection was closed".to_owned()),
        };
    };
    if response.status.to_string() != status {
        return Err(format!("not {status}"));
    }
    for part in parts {
        let holds = if let Some(text) = quoted(part) {
            response.text().contains(text)
        } else if let Some(text) = part.strip_prefix('!').and_then(quoted) {
            !response.text().contains(text)
        } else {
            let (name, value) = part.split_once(": ").ok_or("no field")?;
            match (response.header(name), value.strip_prefix('~')) {
                (None, _) => value == "-",
                (Some(given), None) => given == value,
                (Some(given), Some(pattern)) => Regex::new(&format!("^(?:{pattern})$"))
                    .expect("a pattern")
                    .is_match(given),
            }
        };
        if !holds {
            return Err(format!("not {part}"));
        }
    }
    Ok(())
}

#[test]
fn every_recipe_does_what_it_says() {
    let document = fs::read_to_string(repository().join("docs/rules.md")).expect("the recipes");
    let recipes = recipes(&document);
    assert!(recipes.len() >= 20, "{} recipes", recipes.len());
    let mut wrong = Vec::new();
    for recipe in &recipes {
        assert!(!recipe.trials.is_empty(), "{} is not tried", recipe.title);
        for program in Program::both() {
            let tried = panic::catch_unwind(|| {
                let running = Running::start(&program, recipe);
                let mut lines = recipe.trials.iter();
                lines.try_for_each(|line| {
                    let tried = running.try_line(line);
                    tried.map_err(|why| format!("{line}\n    {why}"))
                })
            });
            let why = match tried {
                Ok(Ok(())) => continue,
                Ok(Err(why)) => why,
                Err(_) => "it does not start (above)".to_owned(),
            };
            wrong.push(format!("{} on {}: {why}", recipe.title, program.name()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
