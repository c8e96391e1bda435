//! The machines that come with the crate.

use std::sync::OnceLock;

use super::{Description, Machine};

/// A preset machine of the crate.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The name of the machine and of its file.
    pub name: &'static str,
    /// The text of its file.
    pub text: &'static str,
}

macro_rules! known {
    ($($name:literal)*) => {
        [$(Known {
            name: $name,
            text: include_str!(concat!("../../machines/", $name, ".toml")),
        }),*]
    };
}

/// All presets: first the machines of published figures.
pub const PRESETS: [Known; COUNT] = known! {
    "8s-192c" "8s-120c" "opteron-64c" "phi-228t"
    "nemo-64c" "nemo-228t"
    "epyc-2x64c" "e7-8895v3-4s" "gold-5320-2s" "epyc-9754-2s"
    "xeon-2s" "cascade-2s" "milan-2s" "emerald-2s"
    "cloud-4s-128v" "ladder-64c" "numa-1024c" "pe-laptop"
};

const COUNT: usize = 18;

/// The description of the preset with that name; `None` if there is none.
///
/// # Panics
///
/// If its file is wrong, which a test rules out.
#[must_use]
pub fn known(name: &str) -> Option<&'static Description> {
    static READ: [OnceLock<Description>; COUNT] = [const { OnceLock::new() }; COUNT];
    let place = PRESETS.iter().position(|preset| preset.name == name)?;
    Some(READ[place].get_or_init(|| {
        let read = Description::parse(PRESETS[place].text);
        read.unwrap_or_else(|wrong| panic!("{name}.toml: {wrong}"))
    }))
}

pub(super) fn machine(name: &str) -> Machine {
    known(name).expect("a preset").machine.clone()
}
