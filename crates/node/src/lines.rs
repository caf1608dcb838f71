//! Strings of JavaScript as bytes, in the fewest steps that Node-API has for it.

use napi::bindgen_prelude::{FromNapiValue, Result, ToNapiValue};
use napi::{check_status, sys};
use std::ffi::c_char;
use std::ptr;

/// Text in UTF-8.
pub struct Lines(pub Vec<u8>);

/// Fits most of what is said at once: then its length need not be requested first.
const USUAL: usize = 2048;

impl FromNapiValue for Lines {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> Result<Self> {
        let copy = |text: *mut c_char, capacity: usize| {
            let mut length = 0;
            // SAFETY: the caller's `env` and `value` are alive, and no more is written than there is room for, with a zero at its end.
            let status = unsafe { sys::napi_get_value_string_utf8(env, value, text, capacity, &raw mut length) };
            check_status!(status, "lines are a string").map(|()| length)
        };
        let mut bytes = Vec::<u8>::with_capacity(USUAL);
        let mut length = copy(bytes.as_mut_ptr().cast(), USUAL)?;
        // The last character may have found no room.
        if length + LONGEST_CHARACTER >= USUAL {
            bytes.reserve(copy(ptr::null_mut(), 0)? + 1);
            length = copy(bytes.as_mut_ptr().cast(), bytes.capacity())?;
        }
        // SAFETY: so many bytes were written.
        unsafe { bytes.set_len(length) };
        Ok(Self(bytes))
    }
}

/// In bytes.
const LONGEST_CHARACTER: usize = 4;

impl ToNapiValue for Lines {
    unsafe fn to_napi_value(env: sys::napi_env, Self(bytes): Self) -> Result<sys::napi_value> {
        let mut value = ptr::null_mut();
        let (text, length) = (bytes.as_ptr().cast(), bytes.len().cast_signed());
        // SAFETY: the caller's `env` is alive, and so are the bytes, which are copied.
        let status = unsafe {
            if bytes.is_ascii() {
                sys::napi_create_string_latin1(env, text, length, &raw mut value)
            } else {
                sys::napi_create_string_utf8(env, text, length, &raw mut value)
            }
        };
        check_status!(status, "no room for the lines")?;
        Ok(value)
    }
}
