/** Exact amounts in billionths of a US dollar, in which the gateway counts. */
export type Nano = bigint;

const NANO = 1_000_000_000n;

/** @param amount a decimal such as "12.345678900" */
export function nanoOf(amount: string | null | undefined): Nano {
  if (amount === null || amount === undefined) return 0n;
  const match = /^(-?)(\d+)(?:\.(\d{1,9})\d*)?$/.exec(amount);
  if (match === null) throw new RangeError(`"${amount}" is not a decimal amount`);
  const [, sign, whole = '0', fraction = ''] = match;
  const nano = BigInt(whole) * NANO + BigInt(fraction.padEnd(9, '0'));
  return sign === '-' ? -nano : nano;
}

/** Without trailing zeros, at least two decimals: "$1,234.5678", "$5.00". */
export function exactUsd(nano: Nano): string {
  const digits = absolute(nano).toString().padStart(10, '0');
  const fraction = digits.slice(-9).replace(/0{1,7}$/, '');
  return `${nano < 0n ? '−' : ''}$${grouped(`${digits.slice(0, -9)}.${fraction}`)}`;
}

/**
 * An amount for people: cents from one dollar on, and three significant digits below, so that a small amount is never
 * shown as $0.00.
 */
export function formatUsd(nano: Nano): string {
  const size = absolute(nano);
  const sign = nano < 0n ? '−' : '';
  if (size === 0n) return '$0.00';
  // Half a cent below one dollar rounds up to it.
  if (size >= NANO - NANO / 2_000n) return `${sign}$${grouped(roundedTo(size, 2))}`;
  const decimals = Math.min(9, Math.max(2, 12 - size.toString().length));
  return `${sign}$${trimmed(roundedTo(size, decimals))}`;
}

/** For axes: "$7.50", "$12.3K". */
export function compactUsd(dollars: number): string {
  if (dollars === 0) return '$0';
  const digits = (minimumFractionDigits: number, maximumFractionDigits = minimumFractionDigits) =>
    `$${dollars.toLocaleString('en-US', { minimumFractionDigits, maximumFractionDigits })}`;
  if (Math.abs(dollars) < 0.1) return digits(2, 6);
  if (Math.abs(dollars) < 1_000) return digits(2);
  return `$${dollars.toLocaleString('en-US', { notation: 'compact', maximumFractionDigits: 1 })}`;
}

function absolute(nano: Nano): Nano {
  return nano < 0n ? -nano : nano;
}

function roundedTo(size: Nano, decimals: number): string {
  const unit = 10n ** BigInt(9 - decimals);
  const rounded = (size + unit / 2n) / unit;
  const digits = rounded.toString().padStart(decimals + 1, '0');
  return `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`;
}

/** Without zeros behind the second decimal. */
function trimmed(text: string): string {
  return text.replace(/(\.\d\d+?)0+$/, '$1');
}

function grouped(text: string): string {
  const [whole = '', fraction] = text.split('.');
  return `${BigInt(whole).toLocaleString('en-US')}.${fraction}`;
}
