import { isSpace, JSON_BYTES } from './bytes.js';

const { COLON, LETTER_N, OPEN_BRACE, QUOTE } = JSON_BYTES;

/** Members of the outermost object with which a request names input that its body does not show. */
export const OF_OUTSIDE = [
  'previous_response_id',
  'conversation',
  'cachedContent',
  'cached_content',
  'assistant_id',
  'agent_id',
  'thread_id',
  'data_sources',
  // A stored prompt, if it is an object.
  'prompt',
] as const;
/** Members with which it asks for tools that the provider runs. */
export const OF_TOOLS = [
  'mcp_servers',
  'web_search_options',
  'search_parameters',
  'plugins',
  'container',
  'enable_search',
] as const;

const [EXEMPT, INPUT, TOOLS] = [0, 1, 2] as const;
const [IS_START, IS_WHOLE] = [false, true] as const;

/** Texts, names or values, that say the same anywhere in the body; those that are exempt come first. */
const TEXTS: readonly (readonly [what: number, isWhole: boolean, ...texts: string[]])[] = [
  // Schemas of tools and responses name theirs.
  [
    EXEMPT,
    IS_START,
    ...['http', 'https'].flatMap((scheme) => [
      `${scheme}://json-schema.org`,
      `${scheme}:\\/\\/json-schema.org`,
    ]),
  ],
  [INPUT, IS_START, 'http:', 'https:', 'gs://', 's3://', 'file:'],
  [INPUT, IS_WHOLE, 'file_id', 'fileId', 'file_uri', 'fileUri', 'item_reference'],
  // A small image may be thousands of tokens, and a page of a document more than its bytes.
  [INPUT, IS_START, 'data:image/', 'image/', 'video/', 'data:application/pdf', 'application/pdf'],
  [TOOLS, IS_WHOLE, 'mcp', 'url_context', 'urlContext', 'codeExecution', 'retrieval'],
  [
    TOOLS,
    IS_START,
    ...['web_search', 'web_fetch', 'file_search', 'fileSearch', 'code_interpreter', 'code_execution'],
    ...['image_generation', 'google_search', 'googleSearch', 'google_maps', 'googleMaps'],
    ...['enterprise_web_search', 'enterpriseWebSearch', 'x_search', 'live_search', 'collections_search'],
    ...['browser_search', 'openrouter:', 'document_library', 'bing_', 'azure_ai_search'],
  ],
];

interface Mark {
  readonly text: Buffer;
  readonly what: number;
  readonly isWhole: boolean;
  /** The byte past those of its key, in lower case; null if it is shorter. */
  readonly next: number | null;
}

/** The bit in which an ASCII letter differs from its capital. */
const CASE_BIT = 0x20;
/** How far the key of a text reaches from its opening quote. */
const REACH = 5;
/** The first, the fourth and the fifth byte of a text tell most texts apart from those that are looked for. */
const keyOf = (first: number, fourth: number, fifth: number): number =>
  ((first & 0x1f) << 10) | ((fourth & 0x1f) << 5) | (fifth & 0x1f);
/** By these bytes, the place in the lists; 0: none. */
export const TEXT_PLACES = new Uint8Array(1 << 15);
const LISTS: Mark[][] = [[]];
/** An ASCII letter that is written as an escape, which no encoder does. */
const ESCAPED = ['\\u004', '\\u005', '\\u006', '\\u007'];
for (const [what, isWhole, ...texts] of [...TEXTS, [INPUT, IS_START, ...ESCAPED] as const])
  for (const text of texts.map((one) => Buffer.from(one))) {
    // Anything may come after the quote that ends a short text.
    const next = text.length > REACH ? text[REACH]! | CASE_BIT : null;
    const fifths = text.length < REACH ? Array.from({ length: 0x20 }, (_, i) => i) : [text[REACH - 1]!];
    for (const fifth of fifths) {
      const key = keyOf(text[0]!, text[3] ?? QUOTE, fifth);
      if (TEXT_PLACES[key] === 0) TEXT_PLACES[key] = LISTS.push([]) - 1;
      LISTS[TEXT_PLACES[key]!]!.push({ text, what, isWhole, next });
    }
  }
const NAME = Buffer.from('"name"');

/**
 * What a request names and does not show: input from elsewhere, such as URLs of images, IDs of files and stored conversations,
 * images and documents, whose tokens are not in their bytes, and tools that the provider runs. So its length says nothing
 * about how much input is billed. Texts that only look like it
 * count too, such as a message that begins with a URL.
 */
export class OutsideInput {
  /** There is input of which the length says nothing. */
  hasInput = false;
  hasTools = false;

  /** A member of the outermost object was found. @param name one of those above, or another one @param first byte of its value */
  member(name: string, first: number): void {
    // Most are null.
    if (first === LETTER_N) return;
    if (name === 'prompt') this.hasInput ||= first === OPEN_BRACE;
    else if (INPUT_NAMES.has(name)) this.hasInput = true;
    else if (TOOL_NAMES.has(name)) this.hasTools = true;
  }

  /**
   * Reads the start of a text.
   *
   * @param at of its opening quote
   * @returns false if the chunk ends before it can be told
   */
  text(chunk: Buffer, at: number): boolean {
    if (at + REACH >= chunk.length && !chunk.includes(QUOTE, at + 1)) return false;
    const place = TEXT_PLACES[keyOf(chunk[at + 1]!, chunk[at + 4]!, chunk[at + REACH]!)]!;
    return place === 0 || this.compare(chunk, at + 1, LISTS[place]!);
  }

  /** @param start past the opening quote */
  private compare(chunk: Buffer, start: number, marks: readonly Mark[]): boolean {
    const next = start + REACH < chunk.length ? chunk[start + REACH]! | CASE_BIT : null;
    for (const { text, what, isWhole, next: expected } of marks) {
      if (next !== null && expected !== null && next !== expected) continue;
      const end = start + startsWith(chunk, start, text);
      if (end === chunk.length) return false;
      if (end - start < text.length || (isWhole && chunk[end] !== QUOTE)) continue;
      if (what === INPUT) this.hasInput = true;
      // A function of the client may have the same name.
      else if (what === TOOLS && !isNamed(chunk, start - 1)) this.hasTools = true;
      return true;
    }
    return true;
  }
}

const INPUT_NAMES = new Set<string>(OF_OUTSIDE);
const TOOL_NAMES = new Set<string>(OF_TOOLS);

/** How many bytes of the text are there, without regard to case. */
function startsWith(chunk: Buffer, start: number, text: Buffer): number {
  const most = Math.min(text.length, chunk.length - start);
  let count = 0;
  while (count < most && (chunk[start + count]! | CASE_BIT) === (text[count]! | CASE_BIT)) count++;
  return count;
}

/** Whether the text is the value of a member `name`, as far as the chunk shows it. */
function isNamed(chunk: Buffer, at: number): boolean {
  let end = at;
  while (isSpace(chunk[end - 1])) end--;
  if (chunk[end - 1] !== COLON) return false;
  end--;
  while (isSpace(chunk[end - 1])) end--;
  return end >= NAME.length && chunk.compare(NAME, 0, NAME.length, end - NAME.length, end) === 0;
}
