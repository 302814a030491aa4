//! Reads the values of options: integers, texts, durations, percentages, sizes.
//!
//! Every function answers with a number in its base unit, or with an error on the value that says what is accepted and
//! gives an example. Each text goes on where the name of the option stands before it: "`duration` takes …".

use std::fmt::Display;
use std::num::NonZeroU32;

use syn::spanned::Spanned;
use syn::{Error, Expr, ExprLit, ExprUnary, Lit, LitStr, UnOp};

use crate::metric::Bound;

/// A whole number from 1.
pub(crate) fn count(expr: &Expr) -> syn::Result<u32> {
    let accepted = "takes a whole number from 1 to 4294967295, such as `64`";
    match literal(expr) {
        Some(Lit::Int(int)) if matches!(int.suffix(), "" | "u32") => {
            int.base10_parse::<NonZeroU32>().map(NonZeroU32::get).map_err(|_| Error::new(int.span(), accepted))
        }
        Some(Lit::Str(text)) => Err(Error::new(text.span(), format!("{accepted}, without quotes"))),
        _ => Err(Error::new(expr.span(), format!("{accepted}; it must be written here as a literal"))),
    }
}

/// Starts per second. The bound is far beyond any engine, and keeps a slip of the finger from asking for endless load.
pub(crate) fn arrival_rate(expr: &Expr) -> syn::Result<f64> {
    let accepted = "takes starts per second, a number above 0 and up to 10000000, such as `2000` or `0.5`";
    let number = match literal(expr) {
        Some(Lit::Int(int)) if int.suffix().is_empty() => int.base10_parse::<u32>().ok().map(f64::from),
        Some(Lit::Float(float)) if matches!(float.suffix(), "" | "f64") => float.base10_parse().ok(),
        Some(Lit::Str(text)) => return Err(Error::new(text.span(), format!("{accepted}, without quotes"))),
        Some(_) => None,
        None if matches!(expr, Expr::Unary(ExprUnary { op: UnOp::Neg(_), .. })) => None,
        None => return Err(Error::new(expr.span(), format!("{accepted}; it must be written here as a literal"))),
    };
    number.filter(|number| *number > 0.0 && *number <= 1e7).ok_or_else(|| Error::new(expr.span(), accepted))
}

/// A scenario's name.
pub(crate) fn name(expr: &Expr) -> syn::Result<String> {
    let text = string(expr, "a name in quotes, such as `\"landing-page\"`")?;
    let name = text.value();
    let refuse = |why: &str| Err(Error::new(text.span(), why));
    if name.is_empty() {
        refuse("cannot be empty: leave the option out to have the function's own name")
    } else if name.chars().any(char::is_control) {
        refuse("cannot hold control characters or line breaks")
    } else if name.trim() != name {
        refuse("cannot begin or end with a space")
    } else {
        Ok(name)
    }
}

/// A duration as nanoseconds.
pub(crate) fn duration(expr: &Expr, zero: Zero) -> syn::Result<u64> {
    let text = string(expr, "a duration in quotes, such as `\"300ms\"` or `\"6s\"`")?;
    read(&text, |text| nanoseconds(text, zero))
}

/// A relative change as a fraction.
pub(crate) fn ratio(expr: &Expr) -> syn::Result<f64> {
    let text = string(expr, "a percentage in quotes, such as `\"3%\"`")?;
    read(&text, |text| percentage(text, 1000.0))
}

/// A limit in the metric's own unit.
pub(crate) fn bound(expr: &Expr, bound: Bound) -> syn::Result<f64> {
    let accepted = match bound {
        Bound::PerSecond => "a throughput in quotes, such as `\"1000/s\"`",
        Bound::Duration => "a duration in quotes, such as `\"20ms\"`",
        Bound::Share => "a percentage in quotes, such as `\"0.1%\"`",
        Bound::Size => "a size in quotes, such as `\"200MB\"`",
    };
    let text = string(expr, accepted)?;
    read(&text, |text| match bound {
        Bound::PerSecond => per_second(text),
        #[expect(clippy::cast_precision_loss, reason = "2^53 nanoseconds are 104 days")]
        Bound::Duration => nanoseconds(text, Zero::Refused).map(|nanoseconds| nanoseconds as f64),
        Bound::Share => percentage(text, 100.0),
        Bound::Size => bytes(text),
    })
}

/// Whether a duration may be nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zero {
    Accepted,
    Refused,
}

/// The literal that an expression is, behind the invisible groups that `macro_rules!` leaves.
pub(crate) fn literal(expr: &Expr) -> Option<&Lit> {
    match expr {
        Expr::Lit(ExprLit { lit, .. }) => Some(lit),
        Expr::Group(group) => literal(&group.expr),
        Expr::Paren(paren) => literal(&paren.expr),
        _ => None,
    }
}

fn string(expr: &Expr, accepted: &str) -> syn::Result<LitStr> {
    match literal(expr) {
        Some(Lit::Str(text)) if text.suffix().is_empty() => Ok(text.clone()),
        _ => Err(Error::new(expr.span(), format!("takes {accepted}"))),
    }
}

fn read<T>(text: &LitStr, parse: impl FnOnce(&str) -> Result<T, String>) -> syn::Result<T> {
    parse(&text.value()).map_err(|why| Error::new(text.span(), why))
}

fn nanoseconds(text: &str, zero: Zero) -> Result<u64, String> {
    let refuse =
        |why: &dyn Display| format!("cannot be `{text}` ({why}): write a number and a unit, such as `300ms` or `6s`");
    let duration = humantime::parse_duration(text.trim()).map_err(|error| refuse(&error))?;
    let nanoseconds = u64::try_from(duration.as_nanos()).map_err(|_| refuse(&"it is longer than 584 years"))?;
    if nanoseconds == 0 && zero == Zero::Refused {
        return Err("must be longer than nothing".to_owned());
    }
    Ok(nanoseconds)
}

fn percentage(text: &str, most: f64) -> Result<f64, String> {
    text.trim()
        .strip_suffix('%')
        .and_then(|number| decimal(number.trim_end()))
        .filter(|percent| (0.0..=most).contains(percent))
        .map(|percent| percent / 100.0)
        .ok_or_else(|| {
            format!("cannot be `{text}`: write a number from 0 to {most} and a percent sign, such as `0.5%`")
        })
}

fn per_second(text: &str) -> Result<f64, String> {
    text.trim()
        .strip_suffix("/s")
        .and_then(|number| decimal(number.trim_end()))
        .filter(|throughput| *throughput > 0.0)
        .ok_or_else(|| format!("cannot be `{text}`: write exchanges per second above 0, such as `1000/s`"))
}

fn bytes(text: &str) -> Result<f64, String> {
    const UNITS: [(&str, f64); 8] = [
        ("B", 1.0),
        ("kB", 1e3),
        ("KB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
    ];
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    UNITS
        .iter()
        .find(|(name, _)| *name == unit.trim_start())
        .and_then(|(_, factor)| decimal(number).map(|number| number * factor))
        .filter(|size| *size >= 1.0)
        .ok_or_else(|| {
            format!("cannot be `{text}`: write a number and one of B, kB, MB, GB, KiB, MiB, GiB, such as `200MB`")
        })
}

/// A plain decimal number: what Rust's own parser also reads (`inf`, `1e9`, `+1`) is refused.
fn decimal(text: &str) -> Option<f64> {
    text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.').then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_fractions_within_their_range() {
        assert_eq!(percentage("3%", 1000.0), Ok(0.03));
        assert_eq!(percentage(" 0.1 % ", 100.0), Ok(0.001));
        for wrong in ["3", "%", "-3%", "101%", "inf%", "1e1%", ""] {
            assert!(percentage(wrong, 100.0).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_know_both_families_of_units() {
        assert_eq!(bytes("200MB"), Ok(200e6));
        assert_eq!(bytes("1.5 GiB"), Ok(1_610_612_736.0));
        for wrong in ["200", "200 mb", "MB", "0MB", "-1MB", "1 MB 2"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn throughput_is_above_zero_and_per_second() {
        assert_eq!(per_second("1000/s"), Ok(1000.0));
        for wrong in ["1000", "0/s", "1000/min", "/s", "NaN/s"] {
            assert!(per_second(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_are_nanoseconds() {
        assert_eq!(nanoseconds("6s", Zero::Refused), Ok(6_000_000_000));
        assert_eq!(nanoseconds("1m 30s", Zero::Refused), Ok(90_000_000_000));
        assert_eq!(nanoseconds("0s", Zero::Accepted), Ok(0));
        for wrong in ["0s", "6", "", "six", "-1s", "600years"] {
            assert!(nanoseconds(wrong, Zero::Refused).is_err(), "{wrong}");
        }
    }
}
