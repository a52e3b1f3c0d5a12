use minijinja::machinery::{self, CodeGenerator, Instructions, ast};
use minijinja::{AutoEscape, Environment, Value};
use std::collections::BTreeMap;
use std::sync::LazyLock;

struct Program<'s> {
    instructions: Instructions<'s>,
    blocks: BTreeMap<&'s str, Instructions<'s>>,
}
self_cell::self_cell!(
    struct Compiled {
        owner: String,
        #[covariant]
        dependent: Program,
    }
);
static ENV: LazyLock<Environment<'static>> = LazyLock::new(|| Environment::empty());

pub struct T(Compiled);
impl T {
    pub fn new(s: &str) -> T {
        T(Compiled::new(s.to_string(), |s| {
            let ast = machinery::parse(s, "x", Default::default()).unwrap();
            let mut g = CodeGenerator::new("x", s);
            g.compile_stmt(&ast);
            let (instructions, blocks) = g.finish();
            Program { instructions, blocks }
        }))
    }
    pub fn render(&self, v: Value) -> String {
        let p = self.0.borrow_dependent();
        let mut out = String::new();
        let mut o = machinery::make_string_output(&mut out);
        machinery::eval(&ENV, &p.instructions, v, &p.blocks, &mut o, AutoEscape::None).unwrap();
        drop(o);
        out
    }
}
fn assert<T: Send + Sync>() {}
pub fn check() { assert::<T>(); }
