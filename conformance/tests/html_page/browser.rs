//! A headless Chromium.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::page::Page;

/// Names under which it is looked for.
pub const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// Longest wait for it, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// What the reader prefers.
#[derive(Clone, Copy)]
pub enum Scheme {
    Light,
    Dark,
}

pub struct Browser(PathBuf);

impl Browser {
    /// The first that is on PATH.
    pub fn find() -> Option<Self> {
        let path = std::env::var_os("PATH")?;
        let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        NAMES
            .iter()
            .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
            .find(|program| program.is_file())
            .map(Self)
    }

    /// The page as it is drawn.
    pub fn screenshot(&self, page: &Page, scheme: Scheme, width: u32) -> Image {
        let file = page.path("shot.png");
        let scheme = match scheme {
            Scheme::Light => 1,
            Scheme::Dark => 0,
        };
        self.run(
            page,
            &[
                format!("--window-size={width},1800"),
                format!("--blink-settings=preferredColorScheme={scheme}"),
                format!("--screenshot={}", file.display()),
            ],
        );
        Image::read(&file)
    }

    /// The page's elements once it is loaded.
    pub fn dom(&self, page: &Page) -> String {
        self.run(page, &["--dump-dom".to_owned()])
    }

    fn run(&self, page: &Page, options: &[String]) -> String {
        let out = page.path("out.txt");
        let mut child = Command::new(&self.0)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
            ])
            .args([
                "--no-first-run",
                "--force-device-scale-factor=1",
                "--disable-dev-shm-usage",
            ])
            .arg(format!(
                "--user-data-dir={}",
                page.path("profile").display()
            ))
            .args(options)
            .arg(format!("file://{}", page.path("report.html").display()))
            .stdin(Stdio::null())
            .stdout(std::fs::File::create(&out).unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let until = Instant::now() + PATIENCE;
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
                None => {
                    child.kill().unwrap();
                    child.wait().unwrap();
                    panic!("the browser did not end within {PATIENCE:?}");
                }
            }
        };
        assert!(status.success(), "{status}");
        std::fs::read_to_string(out).unwrap()
    }
}

/// A picture of the page, point by point.
pub struct Image {
    pub width: usize,
    pub height: usize,
    points: Vec<[u8; 3]>,
}

impl Image {
    fn read(file: &std::path::Path) -> Self {
        let file = std::io::BufReader::new(std::fs::File::open(file).unwrap());
        let mut reader = png::Decoder::new(file).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        assert_eq!(info.bit_depth, png::BitDepth::Eight);
        let points = bytes[..info.buffer_size()]
            .chunks_exact(info.color_type.samples())
            .map(|point| [point[0], point[1], point[2]]);
        Self {
            width: info.width as usize,
            height: info.height as usize,
            points: points.collect(),
        }
    }

    pub fn at(&self, x: usize, y: usize) -> [u8; 3] {
        self.points[y * self.width + x]
    }

    /// The longest run of a colour in a row.
    pub fn longest(&self, color: [u8; 3]) -> usize {
        self.runs(color).max().unwrap_or(0)
    }

    /// How many rows have a run of a colour that is so long.
    pub fn rows_with(&self, color: [u8; 3], long: usize) -> usize {
        self.runs(color).filter(|run| *run >= long).count()
    }

    /// The longest run of a colour in each row.
    fn runs(&self, color: [u8; 3]) -> impl Iterator<Item = usize> {
        self.points.chunks_exact(self.width).map(move |row| {
            let runs = row.split(|point| *point != color);
            runs.map(<[_]>::len).max().unwrap_or(0)
        })
    }
}
