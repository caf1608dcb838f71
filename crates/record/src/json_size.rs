//! How much JSON holds, told from its bytes: a value takes many times the memory of its text, so that a parser comes second.

/// What some JSON would become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonSize {
    /// Values, nested ones included, except the first of each object and array.
    pub values: usize,
    /// Levels of objects and arrays.
    pub depth: usize,
    objects: usize,
    bytes: usize,
}

/// Roughly what a parsed value takes, and an object besides: most have few members, each with a name.
const VALUE: usize = 80;
const OBJECT: usize = 600;

impl JsonSize {
    /// Of bytes that need not be valid JSON.
    pub fn of(json: &[u8]) -> Self {
        let mut size = Self { values: 0, depth: 0, objects: 0, bytes: json.len() };
        let (mut open, mut in_string, mut escaped) = (0_usize, false, false);
        for byte in json {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_string => escaped = true,
                b'"' => in_string = !in_string,
                _ if in_string => {}
                b'[' | b'{' => {
                    size.values += 1;
                    size.objects += usize::from(*byte == b'{');
                    open += 1;
                    size.depth = size.depth.max(open);
                }
                b']' | b'}' => open = open.saturating_sub(1),
                b',' => size.values += 1,
                _ => {}
            }
        }
        size
    }

    /// Roughly what the parsed JSON takes in memory, in bytes.
    pub fn memory(self) -> usize {
        self.bytes + self.values * VALUE + self.objects * OBJECT
    }
}

/// Whether JSON holds more values than these, nested ones included. Builds none of them.
pub fn holds_more_values(json: &[u8], values: usize) -> bool {
    json.len() > values && memchr::memchr3_iter(b',', b'[', b'{', json).nth(values).is_some() && JsonSize::of(json).values > values
}
