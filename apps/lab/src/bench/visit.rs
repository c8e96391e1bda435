//! Subjects that are types: their names, and the visit of the type of a name.

/// Lists of names, and the visit of the type of a name by a visitor's trait.
macro_rules! subjects {
    ($visitor:path: $($list:ident: $($name:literal => $subject:ty,)+;)+) => {
        $(
            /// Names, as the command line has them.
            pub const $list: &[&str] = &[$($name),+];
        )+

        /// Calls `visitor` with the type of that name. `None` if there is none.
        pub fn visit<V: $visitor>(name: &str, visitor: V) -> Option<V::Output> {
            match name {
                $($($name => Some(visitor.visit::<$subject>()),)+)+
                _ => None,
            }
        }
    };
}
pub(super) use subjects;
