// The rounds of each kind of flood, as a table for people.
const HEAD = [
  'FLOOD',
  'KNOWN p50',
  'p99',
  'RATIO p50',
  'p99',
  'KNOWN GOT',
  'COLD p50',
  'WORST',
  'COLD GOT',
  'FLOOD GOT, PER SECOND',
  'LOOK-UPS/s',
  'CPU',
  'WAITED',
  'BLOCKED',
];

/** @param results kinds with their rounds, the first one without a flood */
export function report(results) {
  const figures = results.map(figuresOf);
  const [calm] = figures;
  const rows = figures.map((one) => [
    one.name,
    ms(one.p50),
    ms(one.p99),
    (one.p50 / calm.p50).toFixed(2),
    (one.p99 / calm.p99).toFixed(2),
    counts(one.known),
    ms(one.coldP50),
    ms(one.coldWorst),
    counts(one.away),
    counts(one.flood, one.floodS) || '-',
    one.lookUps.toFixed(0),
    percent(one.cpu),
    percent(one.waited),
    ms(one.blocked),
  ]);
  const near = figures
    .filter(({ near }) => Object.keys(near).length > 0)
    .map((one) => `  ${one.name}: ${counts(one.near)}\n`);
  return (
    table([HEAD, ...rows]) +
    '\nKNOWN, COLD: ms of a cached key, and of the first call of one not cached yet, from an address that is not the ' +
    "flood's.\nRATIO: to the same without a flood. CPU: of the gateway, of one core. WAITED: part of the time in\nwhich " +
    'it was ready and others had the core. BLOCKED: its event loop at most.\n' +
    `\nFirst calls of good keys from the flood's own address (503: come back in a second):\n${near.join('')}`
  );
}

function figuresOf({ name, rounds }) {
  const all = (field) => rounds.flatMap((round) => round[field]);
  const times = (calls) => calls.map((call) => call.ms).sort((a, b) => a - b);
  const known = times(all('known'));
  const away = times(all('away').filter(({ status }) => status === 200));
  const flood = {};
  for (const { flooded } of rounds) {
    for (const [status, count] of Object.entries(flooded?.statuses ?? {}))
      flood[status] = (flood[status] ?? 0) + count;
  }
  const seconds = rounds.reduce((sum, { flooded }) => sum + (flooded?.ms ?? 0), 0) / 1_000;
  const mean = (field) => rounds.reduce((sum, round) => sum + round[field], 0) / rounds.length;
  return {
    name,
    p50: quantile(known, 0.5),
    p99: quantile(known, 0.99),
    known: countStatuses(all('known')),
    coldP50: quantile(away, 0.5),
    coldWorst: away.at(-1) ?? NaN,
    away: countStatuses(all('away')),
    near: countStatuses(all('near')),
    flood,
    floodS: seconds,
    lookUps: mean('lookUps'),
    cpu: mean('cpu'),
    waited: mean('waited'),
    blocked: Math.max(...rounds.map(({ longestBlockMs }) => longestBlockMs)),
  };
}

function countStatuses(calls) {
  const counted = {};
  for (const { status } of calls) counted[status] = (counted[status] ?? 0) + 1;
  return counted;
}

const quantile = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? NaN;
const ms = (value) => (Number.isNaN(value) ? '-' : value.toFixed(1));
const percent = (value) => (Number.isNaN(value) ? '-' : `${(value * 100).toFixed(0)} %`);
const counts = (counted, seconds = 1) =>
  Object.entries(counted)
    .map(([status, count]) => `${Math.round(count / seconds)} x ${status}`)
    .join(', ');

function table(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const line = (row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]))
      .join('  ')
      .trimEnd();
  return `${rows.map(line).join('\n')}\n`;
}
