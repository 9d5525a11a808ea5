import { countSteps } from '../support/steps.js';
import { COUNTED_READERS, REQUEST_READERS, RESPONSE_READERS } from './counted-readers.js';

/** Small ones, so that what is read again with each next chunk takes many steps; large ones for searches to their ends. */
const SIZES = [
  { bytes: 256, count: 400 },
  { bytes: 8_192, count: 16 },
];
/** A line of 64 KiB is the longest that is kept. */
const MOST_KEPT = 80_000;

const RUN = ' '.repeat(40);
const TEXTS = ['x', '\\"', '\\\\', '\\x', '\\u', '",', `${'x'.repeat(23)}\\"`, '\\'];
const VALUES = ['{"a":', '[', '[[],', '1,', '"",', `[${RUN}`, `${RUN}"\\n",`, `${RUN}{},`, '"x",'];
const SCALARS = ['1', '0', '-', 't', 'null', RUN];
const PARTS = ['x', '\r\n', '\r\n--', '\r\n--b', '\r\n--b\r\n\r\n'];

/** Each begin of a body with each text that goes on from there. */
const bodies = (begins: string[], texts: string[]) =>
  begins.flatMap((begin) => texts.map((text): [string, string] => [begin, text]));

const REQUESTS = [
  ...bodies(['{"a":"', '{"', '{"a":{"'], TEXTS),
  ...bodies(['{"a":['], [...VALUES, ...SCALARS]),
  ...bodies(['{"n":1', '{"model":1', '{"n":0.', '{"n":-1e', '{"a":[1'], ['1', '0']),
  ...bodies(['{'], ['"":0,', '"model":0,', '"\\u006d":0,', `"${'x'.repeat(47)}":"\\\\",`]),
  ...bodies(['--b\r\n', '--b\r\ncontent-disposition: form-data; name="model"\r\n\r\n', '--'], PARTS),
];
const RESPONSES = [
  ...bodies(['{"output":[{"type":"', 'data: {"item":{"'], TEXTS),
  ...bodies(['{"output":[', '{"data":[{"b":', 'data: {"item":['], [...VALUES, ...SCALARS]),
  ...bodies(['{'], ['"webSearchQueries":[', '"webSearchQueries":["",']),
  ...bodies(['data: '], ['\n', '{}\n', '"webSearchQueries":[']),
  // As long as a line may be.
  ...bodies([`data: ${'"webSearchQueries":['.repeat(3_000)}`], ['\n']),
];

it.each([
  ...REQUEST_READERS.map((reader) => [reader, REQUESTS] as const),
  ...RESPONSE_READERS.map((reader) => [reader, RESPONSES] as const),
])('%s: a chunk takes steps by its length, and little of it is kept', async (reader, of) => {
  const all = of.flatMap((body) => SIZES.map((size) => [...body, size] as const));
  for (const [begin, text, size] of all) {
    const chunk = Buffer.from(text.repeat(Math.ceil(size.bytes / text.length)));
    const args = [reader, begin, chunk, size.count];
    const { steps, result } = await countSteps<number>(COUNTED_READERS, 'chunks', ...args);
    // 11 at most a byte; what is read again with each chunk, or searched to the end for each quote, takes hundreds.
    const bytes = begin.length + size.count * chunk.length;
    const found = {
      begin: begin.slice(0, 80),
      text,
      size,
      steps: steps / bytes < 40,
      kept: result < MOST_KEPT,
    };
    expect(found).toMatchObject({ steps: true, kept: true });
  }
});
