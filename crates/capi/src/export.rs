//! How a function becomes one of the library's.

/// Defines functions that `antiphon.h` declares.
macro_rules! exports {
    ($(
        $(#[doc = $doc:literal])*
        fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block
    )*) => {$(
        $(#[doc = $doc])*
        ///
        /// # Safety
        ///
        /// As `antiphon.h` says. References are to objects of the caller that are initialised, and
        /// stay where they are for as long as any thread uses them.
        // SAFETY: no other library has names of this prefix.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? $body
    )*};
}
pub(crate) use exports;
