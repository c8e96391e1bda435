//! Subjects that are types: their names, and the dispatch from a name to its type.

/// Defines lists of names, and a function that passes the type of a name to a visitor.
macro_rules! subjects {
    ($visitor:path: $($list:ident: $($name:literal => $subject:ty,)+;)+) => {
        $(
            /// Names on the command line.
            pub const $list: &[&str] = &[$($name),+];
        )+

        /// Calls `visitor` with the type of this name. Returns `None` if there is no such name.
        pub fn visit<V: $visitor>(name: &str, visitor: V) -> Option<V::Output> {
            match name {
                $($($name => Some(visitor.visit::<$subject>()),)+)+
                _ => None,
            }
        }
    };
}
pub(super) use subjects;
