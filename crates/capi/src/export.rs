//! The macro that exports functions.

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
        /// As `antiphon.h` says. References are to initialised objects of the caller, which do not
        /// move while any thread uses them.
        // SAFETY: no other library has names of this prefix.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? $body
    )*};
}
pub(crate) use exports;
