//! `Debug` of types that show nothing but their names.

/// Implements `Debug` for a type, by its name.
macro_rules! by_name {
    ([$($parameter:tt)*] $type:ty, $name:literal) => {
        impl<$($parameter)*> core::fmt::Debug for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str($name)
            }
        }
    };
}

pub(crate) use by_name;
