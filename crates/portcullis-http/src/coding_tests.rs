//! Tests of the content codings.

use std::io::Write;

use flate2::Compression;

use super::*;

const LIMITS: CodingLimits = CodingLimits { bytes_max: 8 << 20, ratio_max: 100, free_bytes: 1 << 20 };

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn zlib(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn raw(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// One uncompressed meta-block, window of 16 bits.
fn brotli(data: &[u8]) -> Vec<u8> {
    assert!((1..=1 << 16).contains(&data.len()));
    // WBITS 0; ISLAST 0; MNIBBLES 00 (four); MLEN - 1 in 16 bits; ISUNCOMPRESSED 1; padding; data; an empty
    // last block.
    let bits = (data.len() as u32 - 1) << 4 | 1 << 20;
    let mut out = bits.to_le_bytes()[..3].to_vec();
    out.extend_from_slice(data);
    out.push(3);
    out
}

fn zstd(data: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(data, ruzstd::encoding::CompressionLevel::Fastest)
}

fn decode(header: &str, coded: &[u8], chunk: usize) -> Result<Vec<u8>, CodingError> {
    let mut decoder = CodingDecoder::new(&codings([header.as_bytes()])?, LIMITS);
    let mut out = Vec::new();
    for piece in coded.chunks(chunk.max(1)) {
        decoder.feed(piece, &mut |data| out.extend_from_slice(data))?;
    }
    decoder.finish()?;
    assert_eq!(decoder.bytes_out(), out.len() as u64);
    Ok(out)
}

#[track_caller]
fn check(header: &str, coded: &[u8], want: Result<&[u8], CodingError>) {
    for chunk in [1, 7, coded.len()] {
        assert_eq!(decode(header, coded, chunk).as_deref(), want.as_ref().map(|w| *w), "{header}, {chunk}");
    }
}

#[test]
fn each_coding_in_any_chunks() {
    let text: Vec<u8> = (0..40_000u32).flat_map(|n| n.to_string().into_bytes()).collect();
    check("gzip", &gzip(&text), Ok(&text));
    check("X-GZip", &gzip(b"a=1"), Ok(b"a=1"));
    check("deflate", &zlib(&text), Ok(&text));
    check("deflate", &raw(&text), Ok(&text));
    check("br", &brotli(&text[..60_000]), Ok(&text[..60_000]));
    check("zstd", &zstd(&text), Ok(&text));
    check("ZSTD", &zstd(b"a=1"), Ok(b"a=1"));
    check("identity", b"a", Ok(b"a"));
    check("", b"a", Ok(b"a"));
}

#[test]
fn codings_upon_codings() {
    check("gzip, gzip", &gzip(&gzip(b"a=1")), Ok(b"a=1"));
    check("deflate, br", &brotli(&zlib(b"a=1")), Ok(b"a=1"));
    check("br,identity, gzip", &gzip(&brotli(b"a=1")), Ok(b"a=1"));
    check("zstd, gzip", &gzip(&zstd(b"a=1")), Ok(b"a=1"));
    check("gzip, gzip, gzip", b"", Err(CodingError::Unsupported));
}

#[test]
fn what_is_not_decoded() {
    for header in ["compress", "gzip, x", "*", "gzip;q=1"] {
        check(header, b"a", Err(CodingError::Unsupported));
    }
    check("gzip", b"a=1&b=2", Err(CodingError::Malformed));
    check("gzip", b"\x1f", Err(CodingError::Truncated));
    check("br", b"\x11\x00\x00", Err(CodingError::Unsupported));
    check("br", b"\x0f\x00\x00", Err(CodingError::Unsupported));
    check("zstd", b"a=1&b=2", Err(CodingError::Malformed));
    // Skippable; a dictionary; a window of 16 MiB; a reserved bit; a block that is too long; a reserved
    // block.
    check("zstd", b"\x50\x2a\x4d\x18\x01\0\0\0x", Err(CodingError::Malformed));
    check("zstd", b"\x28\xb5\x2f\xfd\x01\x00\x07\x01\x00\x00", Err(CodingError::Unsupported));
    check("zstd", b"\x28\xb5\x2f\xfd\x00\x70\x01\x00\x00", Err(CodingError::Unsupported));
    check("zstd", b"\x28\xb5\x2f\xfd\x08\x00\x01\x00\x00", Err(CodingError::Malformed));
    check("zstd", b"\x28\xb5\x2f\xfd\x00\x00\x01\x00\xff", Err(CodingError::Malformed));
    check("zstd", b"\x28\xb5\x2f\xfd\x00\x00\x0f\x00\x00x", Err(CodingError::Malformed));
    // An empty last block, and one byte three times, with a checksum that is not verified.
    check("zstd", b"\x28\xb5\x2f\xfd\x00\x00\x01\x00\x00", Ok(b""));
    check("zstd", b"\x28\xb5\x2f\xfd\x04\x00\x1b\x00\x00aSUM!", Ok(b"aaa"));
    check("zstd", b"\x28\xb5\x2f\xfd\x04\x00\x1b\x00\x00aSUM", Err(CodingError::Truncated));
    let whole = gzip(b"a=1");
    check("gzip", &whole[..whole.len() - 1], Err(CodingError::Truncated));
    check("gzip", b"", Ok(b""));
}

#[test]
fn what_a_reader_of_the_coded_bytes_would_see_is_refused() {
    let coded = gzip(b"a=1");
    check("gzip", &[&coded[..], b"&q=x"].concat(), Err(CodingError::Malformed));
    check("gzip", &[&coded[..], &coded[..]].concat(), Err(CodingError::Malformed));
    check("deflate", &[&zlib(b"a=1")[..], b"&q=x"].concat(), Err(CodingError::Malformed));
    check("br", &[&brotli(b"a=1")[..], b"&q=x"].concat(), Err(CodingError::Malformed));
    check("zstd", &[&zstd(b"a=1")[..], b"&q=x"].concat(), Err(CodingError::Malformed));
    check("zstd", &[zstd(b"a=1"), zstd(b"b=2")].concat(), Err(CodingError::Malformed));
    let with = |flag: u8, text: &[u8]| [&coded[..3], &[flag], &coded[4..10], text, &coded[10..]].concat();
    check("gzip", &with(8, b"data.json\0"), Ok(b"a=1"));
    check("gzip", &with(2, b"\0\0"), Ok(b"a=1"));
    check("gzip", &with(8, b"&q=<script>\0"), Err(CodingError::Malformed));
    check("gzip", &with(8, &[&[b'x'; 300][..], b"\0"].concat()), Err(CodingError::Malformed));
    check("gzip", &with(16, b"comment\0"), Err(CodingError::Malformed));
    check("gzip", &with(4, b"\x01\0x"), Err(CodingError::Malformed));
}

#[test]
fn bombs() {
    let limits = CodingLimits { bytes_max: 4 << 20, ratio_max: 50, free_bytes: 1 << 20 };
    let run = |header: &str, coded: &[u8]| {
        let mut decoder = CodingDecoder::new(&codings([header.as_bytes()]).unwrap(), limits);
        let mut most = 0;
        let result = coded.chunks(512).try_for_each(|chunk| decoder.feed(chunk, &mut |_| most += 1));
        assert!(decoder.bytes_out() <= limits.bytes_max + PIECE_BYTES as u64);
        result
    };
    let zeros = vec![0; 16 << 20];
    assert_eq!(run("gzip", &gzip(&zeros)), Err(CodingError::Bomb));
    assert_eq!(run("gzip, gzip", &gzip(&gzip(&zeros))), Err(CodingError::Bomb));
    assert_eq!(run("zstd", &zstd(&zeros)), Err(CodingError::Bomb));
    let mut random = 1u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 60) as u8
    };
    let half: Vec<u8> = (0..5 << 20).map(|_| next()).collect();
    assert_eq!(run("deflate", &zlib(&half)), Err(CodingError::TooLarge));
    // A megabyte is never a bomb.
    assert_eq!(run("gzip", &gzip(&zeros[..1 << 20])), Ok(()));
}

/// In place of chunk by chunk: the same bytes, the same word on whether that was all.
#[test]
fn whole_values_are_unpacked_as_bodies_are() {
    let text: Vec<u8> =
        (0..3_000u32).flat_map(|n| format!("item {} of {}, ", n * n, n % 7).into_bytes()).collect();
    let noise: Vec<u8> = (0..300u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut compared = 0;
    for data in [&text[..], &text[..90], &noise, b"a"] {
        for (packing, coding, packed) in [
            (Packing::Gzip, Coding::Gzip, gzip(data)),
            (Packing::Zlib, Coding::Deflate, zlib(data)),
            (Packing::Deflate, Coding::Deflate, raw(data)),
        ] {
            assert_eq!(unpack(packing, &packed, LIMITS), (data.to_vec(), true), "{packing:?}");
            let step = (packed.len() / 200).max(1);
            let cut = (1..packed.len()).step_by(step).map(|at| packed[..at].to_vec());
            let longer = [&b"x"[..], b"12345678", &packed].map(|more| [&packed[..], more].concat());
            let broken = (0..packed.len()).step_by(step).map(|at| {
                let mut packed = packed.clone();
                packed[at] ^= 0x10;
                (packed, true)
            });
            let whole = |value| (value, false);
            for (value, is_broken) in cut.chain(longer).map(whole).chain(broken) {
                let mut out = Vec::new();
                let mut decoder = CodingDecoder::new(&[coding], LIMITS);
                // The coding `deflate` takes a body for zlib by its first two bytes; skip values of which
                // that makes another format than the one asked for.
                let is_other = |first: &[u8]| {
                    let [first, second, ..] = *first else { return true };
                    (first & 15 == 8 && u16::from_be_bytes([first, second]).is_multiple_of(31))
                        != (packing == Packing::Zlib)
                };
                if coding == Coding::Deflate && is_other(&value) {
                    continue;
                }
                let fed = decoder.feed(&value, &mut |piece| out.extend_from_slice(piece));
                let is_whole = fed.is_ok() && decoder.finish().is_ok();
                let (unpacked, all) = unpack(packing, &value, LIMITS);
                // Of a piece with a mistake in it a body has nothing, nor of a second member.
                let is_double = packing == Packing::Gzip && value.len() == 2 * packed.len();
                let same = if is_broken || is_double { out.len() } else { unpacked.len().max(out.len()) };
                assert_eq!(
                    (all, unpacked.get(..same)),
                    (is_whole, Some(&out[..])),
                    "{packing:?} {value:02x?}"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 2_000, "{compared}");
}

/// Receivers of gzip that join members read all of them.
#[test]
fn all_members_of_gzip_are_unpacked() {
    let limits = |bytes_max| CodingLimits { bytes_max, ratio_max: 1_000, free_bytes: 0 };
    let members = [&b""[..], b"plain text, ", b"", b"and what a reader of one member misses"];
    let packed = members.map(gzip).concat();
    assert_eq!(unpack(Packing::Gzip, &packed, LIMITS), (members.concat(), false));
    // As far as there is room for all of them together.
    assert_eq!(unpack(Packing::Gzip, &packed, limits(20)), (members.concat()[..20].to_vec(), false));
    // What stands behind them is none, and a member that is cut off counts as far as it goes.
    for behind in [&b"\0\0\0\0"[..], b"x", b"\x1F\x8B\x08"] {
        let padded = [&packed[..], behind].concat();
        assert_eq!(unpack(Packing::Gzip, &padded, LIMITS), (members.concat(), false));
    }
    // Zeros that pad a member hide none behind them.
    let padded = members.map(|member| [gzip(member), vec![0; 7]].concat()).concat();
    assert_eq!(unpack(Packing::Gzip, &padded, LIMITS), (members.concat(), false));
    let (cut, is_whole) = unpack(Packing::Gzip, &packed[..packed.len() - 12], LIMITS);
    assert!(cut.starts_with(b"plain text, and what") && !is_whole, "{}", cut.escape_ascii());
    // A member starts with an empty window: nothing of the one before can be repeated.
    let first = gzip(&[b'a'; 1_000]);
    let repeats = [&gzip(b"")[..10], &[0b0000_0011, 0b0000_0010, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..]].concat();
    let (out, _) = unpack(Packing::Gzip, &[first, repeats].concat(), LIMITS);
    assert!(!out[1_000..].contains(&b'a'), "{}", out[1_000..].escape_ascii());
}

/// Empty members take no time that their bytes do not pay for: room for all of the rest, cleared for each
/// member, took minutes.
#[test]
fn a_flood_of_members_ends() {
    let packed = gzip(b"").repeat(200_000);
    assert_eq!(unpack(Packing::Gzip, &packed, LIMITS), (Vec::new(), false));
}

/// A match that reaches before the data: zlib refuses it, decoders with a window in memory read zeros.
#[test]
fn zeros_stand_in_front_of_the_data() {
    // Fixed codes: a match of three bytes, one byte back; `x`; the end.
    let bits = [(0b011, 3), (0b100_0000, 7), (0, 5), (0b0001_0101, 8), (0, 7)];
    let (mut packed, mut at) = (0u64, 0);
    for (value, width) in bits {
        packed |= value << at;
        at += width;
    }
    let packed = &packed.to_le_bytes()[..4];
    let mut out = Vec::new();
    let mut decoder = CodingDecoder::new(&[Coding::Deflate], LIMITS);
    decoder.feed(packed, &mut |piece| out.extend_from_slice(piece)).unwrap();
    // Not what another value has left in the buffer.
    unpack(Packing::Deflate, &raw(&[b'a'; 100_000]), LIMITS);
    assert_eq!(unpack(Packing::Deflate, packed, LIMITS), (out, true));
    assert_eq!(unpack(Packing::Deflate, packed, LIMITS).0, b"\0\0\0x");
}

#[test]
fn whole_values_keep_to_the_limits() {
    let bomb = raw(&vec![b'a'; 4 << 20]);
    let limits = |bytes_max, ratio_max, free_bytes| CodingLimits { bytes_max, ratio_max, free_bytes };
    for (limits, expected) in [
        (limits(1 << 20, 1 << 20, 0), 1 << 20),
        (limits(8 << 20, 20, 0), 20 * bomb.len()),
        (limits(8 << 20, 1, 100_000), 100_000),
        (limits(0, 20, 0), 0),
    ] {
        let (out, is_whole) = unpack(Packing::Deflate, &bomb, limits);
        assert_eq!((out.len(), is_whole), (expected, false));
        assert!(out.iter().all(|b| *b == b'a'));
    }
    let exactly = raw(&[b'a'; 700]);
    assert!(unpack(Packing::Deflate, &exactly, limits(700, 1_000, 0)).1);
    assert!(!unpack(Packing::Deflate, &exactly, limits(699, 1_000, 0)).1);
}

/// Chunks of S3 with these signatures, and what is behind the last one.
fn aws_chunked(chunks: &[&[u8]], signature: Option<&str>, trailers: &str) -> Vec<u8> {
    let extension = signature.map(|text| format!(";chunk-signature={text}")).unwrap_or_default();
    let mut out = Vec::new();
    for chunk in chunks.iter().filter(|chunk| !chunk.is_empty()) {
        out.extend([format!("{:x}{extension}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat());
    }
    out.extend(format!("0{extension}\r\n{trailers}").into_bytes());
    out
}

const SIGNATURE: &str = "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648";

#[test]
fn frames_of_s3() {
    let text: Vec<u8> = (0..40_000u32).flat_map(|n| n.to_string().into_bytes()).collect();
    let signed = "x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:63bddb248ad2590c92712055f51b8e78ab024eead08276b24f010b0efd74843f\r\n\r\n";
    for (signature, trailers) in [
        (None, "\r\n"),
        (None, "x-amz-checksum-crc32:AAAAAA==\r\n\r\n"),
        (None, "x-amz-checksum-sha256:Rks\n\r\n\r\n"),
        (None, ""),
        (Some(SIGNATURE), "\r\n"),
        (Some("3046022100aB**"), "\r\n"),
        (Some(SIGNATURE), signed),
    ] {
        check(
            "aws-chunked",
            &aws_chunked(&[&text[..70_000], &text[70_000..]], signature, trailers),
            Ok(&text),
        );
        check("AWS-Chunked", &aws_chunked(&[], signature, trailers), Ok(b""));
    }
    // Around another coding, on whichever side of it the head names it.
    let frame = aws_chunked(&[&gzip(&text)], Some(SIGNATURE), signed);
    for header in ["aws-chunked,gzip", "gzip, aws-chunked", "identity, gzip, aws-chunked"] {
        check(header, &frame, Ok(&text));
    }
    check("aws-chunked, aws-chunked", &frame, Err(CodingError::Unsupported));
    check("gzip, br, aws-chunked", &frame, Err(CodingError::Unsupported));
}

#[test]
fn frames_that_lie() {
    let huge = "f".repeat(17);
    for wire in [
        "5\r\nab\r\n0\r\n\r\n",
        "1\r\nab\r\n0\r\n\r\n",
        "2\nab\r\n0\r\n\r\n",
        "2\r\nab\n0\r\n\r\n",
        "\r\n\r\n",
        "-2\r\nab\r\n0\r\n\r\n",
        "+2\r\nab\r\n0\r\n\r\n",
        "0x2\r\nab\r\n0\r\n\r\n",
        " 2\r\nab\r\n0\r\n\r\n",
        "2 \r\nab\r\n0\r\n\r\n",
        "g\r\nab\r\n",
        "2;x=' or 1=1--\r\nab\r\n0\r\n\r\n",
        "2;chunk-signature=\r\nab\r\n0\r\n\r\n",
        "2;chunk-signature=ab&a=1\r\nab\r\n0\r\n\r\n",
        "0\r\nname:value\r\n\r\n",
        "0\r\nx-amz-:value\r\n\r\n",
        "0\r\nx-amz-a:<script>\r\n\r\n",
        "0\r\nx-amz-a=b:c\r\n\r\n",
        "0\r\n\r\na=1&b=2\r\n",
        "a=1&b=2",
        &format!("{huge}\r\nab"),
        &format!("2;chunk-signature={}\r\nab", "a".repeat(400)),
        &format!("0\r\n{}", "\r\n".repeat(2_100)),
    ] {
        let end = decode("aws-chunked", wire.as_bytes(), 1);
        let is_error = matches!(end, Err(CodingError::Malformed | CodingError::Truncated));
        assert!(is_error, "{wire:.60?}: {end:?}");
        assert_eq!(end, decode("aws-chunked", wire.as_bytes(), wire.len()), "{wire:.60?}");
    }
    let whole = aws_chunked(&[b"a=1", b"&b=2"], Some(SIGNATURE), "x-amz-checksum-crc32:AA==\r\n\r\n");
    let last = whole.windows(2).position(|two| two == b"0;").unwrap() + 3 + 16 + SIGNATURE.len();
    for end in 0..last {
        assert_eq!(decode("aws-chunked", &whole[..end], 7), Err(CodingError::Truncated), "{end}");
    }
}

/// A block of literals, and copies where the last bytes are repeated.
fn snappy(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut length = data.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    let mut at = 0;
    while at < data.len() {
        let repeated = |offset: &usize| at >= *offset && data[at..].starts_with(&data[at - offset..at]);
        match [4, 12, 60].iter().find(|offset| repeated(offset)) {
            Some(offset) => {
                out.extend([((offset - 1) << 2 | 2) as u8, *offset as u8, 0]);
                at += offset;
            }
            None => {
                let here = (data.len() - at).min(300);
                out.extend([61 << 2, (here - 1) as u8, ((here - 1) >> 8) as u8]);
                out.extend(&data[at..at + here]);
                at += here;
            }
        }
    }
    out
}

fn snappy_framed(data: &[u8]) -> Vec<u8> {
    let mut out = b"\xFF\x06\0\0sNaPpY".to_vec();
    for (number, piece) in data.chunks(40_000).enumerate() {
        let (kind, block) = if number % 2 == 0 { (0, snappy(piece)) } else { (1, piece.to_vec()) };
        let length = (block.len() + 4) as u32;
        out.push(kind);
        out.extend(&length.to_le_bytes()[..3]);
        out.extend(b"\0\0\0\0");
        out.extend(block);
    }
    out
}

#[test]
fn snappy_in_both_formats() {
    let text: Vec<u8> = (0..40_000u32).flat_map(|n| n.to_string().into_bytes()).collect();
    let repeated = b"0123456789ab".repeat(1_000);
    for data in [&text[..], &repeated, b"a", b""] {
        check("snappy", &snappy(data), Ok(data));
        check("snappy", &snappy_framed(data), Ok(data));
        check("x-snappy-framed", &snappy_framed(data), Ok(data));
    }
    check("snappy, gzip", &gzip(&snappy(&text)), Ok(&text));
    check("x-snappy-framed", &snappy(&text), Err(CodingError::Malformed));
    // `aaaaaaaa`: a literal, and a copy that repeats what it makes.
    check("snappy", b"\x08\x00a\x0D\x01", Ok(b"aaaaaaaa"));
}

#[test]
fn snappy_that_lies() {
    for coded in [
        &b"\x02\x00a"[..],
        b"\x01\x04ab",
        b"\x01\x00ab",
        b"\x08\x00a\x0D\x02",
        b"\x08\x00a\x0D\x00",
        b"\x08\x0D\x01",
        b"\xFF\xFF\xFF\xFF\xFF\x01\x00a",
        b"\xFF\xFF\xFF\xFF\x7F\x00a",
        b"\xFF\xFF\xFF\xFF\x0F\xFC\xFF\xFF\xFF\xFFa",
        b"\x08\xFC\xFF\xFF\xFF\xFFa",
        b"\xFF\x06\0\0sNaPpY\xFE\x02\0\0ab",
        b"\xFF\x06\0\0sNaPpY\x80\x02\0\0ab",
        b"\xFF\x06\0\0sNaPpY\x01\x02\0\0ab",
        b"\xFF\x06\0\0sNaPpY\x00\xFF\xFF\xFFab",
        b"\xFF\x06\0\0sNaPp",
        b"a=1&b=2",
    ] {
        for size in [1, coded.len()] {
            let end = decode("snappy", coded, size);
            let is_error = matches!(end, Err(CodingError::Malformed | CodingError::Truncated));
            assert!(is_error, "{coded:x?}: {end:?}");
        }
    }
    // Copies of copies: what comes out is bounded as with gzip, and so is what is kept.
    let mut bomb = b"\xFF\xFF\xFF\xFF\x0F\x00a".to_vec();
    bomb.extend(b"\xFE\x01\0".repeat(200_000));
    check("snappy", &bomb, Err(CodingError::TooLarge));
    let limits = CodingLimits { bytes_max: 8 << 20, ratio_max: 4, free_bytes: 1 << 10 };
    let mut decoder = CodingDecoder::new(&[Coding::Snappy], limits);
    assert_eq!(decoder.feed(&bomb, &mut |_| {}), Err(CodingError::Bomb));
    assert!(decoder.held_bytes() < 8 << 20, "{}", decoder.held_bytes());
}
