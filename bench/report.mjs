// The results as tables for people.

export function report({ machine, options, scenarios, ladder }) {
  const parts = [head(machine, options)];
  if (scenarios.calls) parts.push(calls(scenarios.calls));
  if (scenarios.latency) parts.push(latency(scenarios.latency));
  if (scenarios.streams) parts.push(streams(scenarios.streams));
  if (scenarios.uploads) parts.push(uploads(scenarios.uploads));
  if (ladder) parts.push(layers(ladder));
  return parts.join('\n\n');
}

export function head(
  { cores, cpu, kernel, loadBefore, pinning, versions, commit, date },
  { rounds, windowMs, quick },
) {
  const known = Object.entries(versions).filter(([, version]) => version !== null);
  return [
    `${date.slice(0, 10)}, commit ${commit}, ${cores} × ${cpu}, ${kernel}, load average before ${loadBefore}`,
    known.map(([name, version]) => `${name} ${version}`).join(', '),
    pinning.gateway === null
      ? 'nothing was pinned: no taskset, or one core'
      : `what is measured on core ${pinning.gateway}, load, provider and Postgres on ${pinning.others}`,
    `${rounds} interleaved rounds of ${windowMs / 1_000} s${quick ? ' (--quick: a first look, not for quoting)' : ''}`,
  ].join('\n');
}

function calls({ connections, provider, results, parity, refused }) {
  const rows = results.map((result) => [
    result.name,
    result.boundBy === null ? whole(result.callsPerSecond) : `- (${result.boundBy})`,
    figure(result.gatewayMicros),
    figure(result.postgresMicros),
    figure(result.providerMicros),
    figure(result.toBare, 2),
    figure(result.toNginx, 2),
    whole(result.rowsPerSecond),
  ]);
  const columns = ['', 'calls/s', 'µs/call', 'Postgres µs/row', 'provider µs', '/ bare', '/ nginx', 'rows/s'];
  return [
    `Closed loop, ${connections} connections, provider ${provider}: calls a second of one core, processor time of the ` +
      'process tree per call',
    table(columns, rows),
    `A dash: not the contender but what is named was the bottleneck. ${same(parity)}`,
    ...(refused === null ? [] : [`REFUSED: ${refused}`]),
  ].join('\n');
}

function latency({ ratePerSecond, results, parity }) {
  const rows = results.map((result) => [
    result.name,
    figure(result.p50, 2),
    figure(result.p99, 2),
    figure(result.addedP50, 2),
    figure(result.addedP99, 2),
    figure(result.generatorP99, 2),
  ]);
  return [
    `Open loop, ${ratePerSecond} calls a second: ms from the moment a call was due, and what is added to direct`,
    table(['', 'p50', 'p99', 'added p50', 'added p99', 'p99 of our own lateness'], rows),
    ...(results.some(({ generatorP99 }) => generatorP99 > 1)
      ? ['The load itself was late by more than 1 ms: this machine was too busy for a p99 to mean anything.']
      : []),
    same(parity),
  ].join('\n');
}

function streams({ busy, results, held, parity }) {
  const chunkRows = results.map(({ name, chunkMicros, toBare }) => [
    name,
    figure(chunkMicros),
    figure(toBare, 2),
  ]);
  const heldRows = Object.entries(held).flatMap(([name, { idle, steps, after, again, afterAgain }]) => [
    ...steps.map(({ open, resident, callMicros }) => [
      name,
      String(open),
      mebibytes(resident - idle),
      figure(callMicros),
    ]),
    [name, 'gone', mebibytes(after - idle), ''],
    [name, 'a second time', mebibytes(again - idle), ''],
    [name, 'gone', mebibytes(afterAgain - idle), ''],
  ]);
  return [
    `Streams, ${busy.streams} at a time with a chunk every ${busy.everyMs} ms: processor time per chunk`,
    table(['', 'µs/chunk', '/ bare'], chunkRows),
    'Open streams: resident memory above idle, and the cost of other calls beside them',
    table(['', 'open', 'MiB', 'µs/call'], heldRows),
    `${same(parity.busy)} ${same(parity.held)}`,
  ].join('\n');
}

function uploads({ bytes, atOnce, results, parity }) {
  const rows = results.map(({ name, perUpload }) => [name, mebibytes(perUpload)]);
  return [
    `Uploads of ${bytes / 2 ** 20} MiB that the provider does not read yet, ${atOnce} at a time: memory held for each`,
    table(['', 'MiB'], rows),
    same(parity),
  ].join('\n');
}

function layers({ results, parity }) {
  const rows = results.map(({ name, gatewayMicros, cost, toBare }) => [
    name,
    figure(gatewayMicros),
    figure(cost),
    figure(toBare, 2),
  ]);
  return [
    'Ladder: one layer more is left out on each line; what it costs is the difference to the line above',
    table(['', 'µs/call', 'the layer', '/ bare'], rows),
    same(parity),
  ].join('\n');
}

function same(parity) {
  return Object.entries(parity)
    .map(([name, { calls, rows }]) => `${name}: ${calls} calls, ${rows} rows.`)
    .join(' ');
}

function whole(value) {
  return value === null ? '' : Math.round(value).toLocaleString('en-US');
}

export function figure(value, digits = 1) {
  return value === null ? '' : value.toFixed(digits);
}

function mebibytes(bytes) {
  return bytes === null ? '' : (bytes / 2 ** 20).toFixed(1);
}

/** A Markdown table: names to the left, figures to the right. */
export function table(columns, rows) {
  const widths = columns.map((column, i) => Math.max(column.length, ...rows.map((row) => row[i].length)));
  const line = (cells) =>
    `| ${cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join(' | ')} |`;
  const rule = `| ${widths.map((width, i) => (i === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)).join(' | ')} |`;
  return [line(columns), rule, ...rows.map(line)].join('\n');
}
