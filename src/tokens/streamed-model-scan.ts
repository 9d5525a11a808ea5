const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

const KEY = Buffer.from('model');
/** A longer text is no name. */
const LONGEST_NAME = 16_384;
/** Strings are read byte by byte this far, then with memchr, whose call costs as much as this many bytes. */
const SHORT_STRING = 48;
const NOTHING = Buffer.alloc(0);

/** What the scan is in. Names and values are those of the outermost object; the scan is not in any other string's text. */
type Place = 'start' | 'name' | 'model' | 'other';

/**
 * Finds the model that a JSON request names in its own `model` member while the body passes, in chunks of any size. It
 * stops at the first `model`, and at once if the body is no JSON object. It keeps nothing but the name; each byte is read
 * once, texts with memchr.
 */
export class StreamedModelScan {
  /** The model; null if it was not found (yet). */
  model: string | null = null;
  /** True if nothing more is read. */
  done = false;

  private depth = 0;
  private inString = false;
  /** Inside a string, the next byte is escaped. */
  private escaped = false;
  private place: Place = 'start';
  /** The next string of the outermost object is a name. */
  private expectsName = false;
  /** The last name of the outermost object was `model`. */
  private isModel = false;
  /** The part of a name or of the model that has passed. */
  private text: Buffer = NOTHING;

  /** @param chunk read, not kept */
  add(chunk: Buffer): void {
    for (let at = 0; at < chunk.length && !this.done;)
      at = this.inString ? this.readString(chunk, at) : this.readStructure(chunk, at);
  }

  /** Reads to the start of the next string. */
  private readStructure(chunk: Buffer, from: number): number {
    for (let at = from; at < chunk.length; at++) {
      switch (chunk[at]!) {
        case 0x20:
        case 0x0a:
        case 0x0d:
        case 0x09:
          break;
        case QUOTE:
          this.done = this.depth === 0;
          this.startString();
          return at + 1;
        case OPEN_BRACE:
        case OPEN_BRACKET:
          // Neither an array nor an object names a model.
          if (this.depth === 0 ? chunk[at] === OPEN_BRACKET : this.depth === 1 && this.isModel)
            return this.end(chunk);
          this.expectsName = ++this.depth === 1;
          break;
        case CLOSE_BRACE:
        case CLOSE_BRACKET:
          if (--this.depth <= 0) return this.end(chunk);
          break;
        case COMMA:
          if (this.depth !== 1) break;
          if (this.isModel) return this.end(chunk);
          this.expectsName = true;
          break;
        case COLON:
          break;
        default:
          if (this.depth === 0) return this.end(chunk);
      }
    }
    return chunk.length;
  }

  private startString(): void {
    this.inString = true;
    if (this.depth !== 1) {
      this.place = 'other';
    } else if (this.expectsName) {
      this.place = 'name';
      this.expectsName = false;
      this.isModel = false;
    } else {
      this.place = this.isModel ? 'model' : 'other';
    }
  }

  /** Reads to the end of the string. */
  private readString(chunk: Buffer, from: number): number {
    const end = this.findEnd(chunk, from);
    if (this.place !== 'other') this.keep(chunk.subarray(from, end));
    if (end === chunk.length) return end;
    this.inString = false;
    if (this.place === 'name') this.isModel = this.text.equals(KEY);
    if (this.place === 'model') {
      this.model = parse(this.text);
      this.done = true;
    }
    this.text = NOTHING;
    return end + 1;
  }

  /** Index of the quote that ends the string; the length of the chunk if it is not in the chunk. */
  private findEnd(chunk: Buffer, from: number): number {
    const { length } = chunk;
    let at = from;
    while (at < length) {
      const stop = Math.min(at + SHORT_STRING, length);
      for (; at < stop; at++) {
        if (this.escaped) this.escaped = false;
        else if (chunk[at] === BACKSLASH) this.escaped = true;
        else if (chunk[at] === QUOTE) return at;
      }
      if (at === length) break;
      const quote = chunk.indexOf(QUOTE, at);
      const end = quote === -1 ? length : quote;
      let escapes = end;
      while (escapes > at && chunk[escapes - 1] === BACKSLASH) escapes--;
      // An escape just before this part may have escaped its first backslash.
      this.escaped = (end - escapes + +(escapes === at && this.escaped)) % 2 === 1;
      if (quote === -1) return length;
      if (!this.escaped) return quote;
      this.escaped = false;
      at = quote + 1;
    }
    return length;
  }

  private keep(part: Buffer): void {
    const most = this.place === 'name' ? KEY.length + 1 : LONGEST_NAME;
    if (this.text.length + part.length <= most) this.text = Buffer.concat([this.text, part]);
    else if (this.place === 'name') this.place = 'other';
    else this.done = true;
  }

  private end(chunk: Buffer): number {
    this.done = true;
    return chunk.length;
  }
}

/** The text of a JSON string; null if it is empty or none. */
function parse(text: Buffer): string | null {
  try {
    return (JSON.parse(`"${text.toString('utf8')}"`) as string) || null;
  } catch {
    return null;
  }
}
