//! The columns of a group, as they are read: all are unpacked at once, then each gives its values
//! one after the other.

use super::{COLUMNS, Column, GROUP_BYTES_MAX, MUST_UNDERSTAND, RAW, SECTION, ZSTD, damaged};
use crate::index::error::IndexError;
use crate::index::varint::{Body, Reason, unzigzag};

/// The columns of one group, each with the place of its next value.
pub(super) struct Columns {
    contents: [Vec<u8>; COLUMNS.len()],
    at: [usize; COLUMNS.len()],
    /// Made once: making one for each column took longer than decompressing it.
    decompressor: Option<zstd::bulk::Decompressor<'static>>,
}

impl Columns {
    pub(super) fn new() -> Columns {
        let decompressor = zstd::bulk::Decompressor::new().ok();
        Columns { contents: Default::default(), at: [0; COLUMNS.len()], decompressor }
    }

    /// Replaces the columns by those of a group.
    pub(super) fn unpack(&mut self, body: &[u8]) -> Result<(), IndexError> {
        self.contents.iter_mut().for_each(Vec::clear);
        self.at = [0; COLUMNS.len()];
        let mut body = Body::new(body);
        let mut last = 0;
        while body.rest_bytes() > 0 {
            let [id, coding] = body.take().map_err(damaged)?;
            let length = usize::try_from(body.number().map_err(damaged)?).unwrap_or(usize::MAX);
            let stored = body.bytes(GROUP_BYTES_MAX).map_err(damaged)?;
            if id & !MUST_UNDERSTAND <= last || length > GROUP_BYTES_MAX {
                return Err(damaged("columns are not in order, or too long"));
            }
            last = id & !MUST_UNDERSTAND;
            let Some(column) = self.contents.get_mut(usize::from(id).wrapping_sub(1)) else {
                if id & MUST_UNDERSTAND != 0 {
                    return Err(IndexError::Later { what: SECTION });
                }
                continue;
            };
            match coding {
                RAW => column.extend_from_slice(stored),
                ZSTD => {
                    column.reserve(length);
                    self.decompressor
                        .as_mut()
                        .and_then(|it| it.decompress_to_buffer(stored, column).ok())
                        .ok_or(damaged("a column cannot be decompressed"))?;
                }
                _ => return Err(IndexError::Later { what: SECTION }),
            }
            if column.len() != length {
                return Err(damaged("a column has another length"));
            }
        }
        Ok(())
    }

    /// Whether every value of every column was taken.
    pub(super) fn are_used_up(&self) -> bool {
        self.contents.iter().zip(self.at).all(|(column, at)| at == column.len())
    }

    pub(super) fn number(&mut self, column: Column) -> Result<u64, Reason> {
        let place = column as usize - 1;
        // Most numbers are small.
        if let Some(&byte) = self.contents[place].get(self.at[place])
            && byte < 0x80
        {
            self.at[place] += 1;
            return Ok(byte.into());
        }
        self.value(column, |body| body.number())
    }

    pub(super) fn signed(&mut self, column: Column) -> Result<i64, Reason> {
        self.number(column).map(unzigzag)
    }

    pub(super) fn array<const LENGTH: usize>(
        &mut self,
        column: Column,
    ) -> Result<[u8; LENGTH], Reason> {
        self.value(column, |body| body.take())
    }

    pub(super) fn bytes(&mut self, column: Column, length: usize) -> Result<&[u8], Reason> {
        let place = column as usize - 1;
        let start = self.at[place];
        let bytes = self.contents[place].get(start..start + length).ok_or("path is cut off")?;
        self.at[place] += length;
        Ok(bytes)
    }

    fn value<T>(
        &mut self,
        column: Column,
        take: impl FnOnce(&mut Body<'_>) -> Result<T, Reason>,
    ) -> Result<T, Reason> {
        let place = column as usize - 1;
        let mut body = Body::new(&self.contents[place][self.at[place]..]);
        let value = take(&mut body)?;
        self.at[place] = self.contents[place].len() - body.rest_bytes();
        Ok(value)
    }
}
