//! Dialects: the tool surfaces that the engine is offered under. Each is thin: it checks a request, decides how the
//! child is launched, and words the outcome. A dialect knows neither MCP nor the command line.

pub mod delegator;
pub mod stop;
