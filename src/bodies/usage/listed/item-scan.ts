import { JSON_BYTES } from '../../bytes.js';

const { BACKSLASH, CLOSE_BRACE, CLOSE_BRACKET, COLON, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE } = JSON_BYTES;

/** Longer texts are none of the names and words that are read. */
const MAX_TEXT = 128;
/** Depths in the document: of its members, of the items in a list, and of the members of the `action` of an item. */
const [MEMBERS, LIST, ACTION] = [1, 2, 4] as const;
/** Nothing is read of what lies deeper. */
const DEEPEST = ACTION + 1;

/** What an item of a response says of itself. */
export interface Item {
  type?: string;
  status?: string;
  container_id?: string;
  /** The type of its `action`. */
  action?: string;
}

/**
 * Scans one JSON object that comes in chunks of any size for the items of a member that is an object or a list of them. Texts
 * are skipped with a native search for their end; nothing of them is kept but short words. It does not validate.
 */
export class ItemScan {
  /** The last word `type` of the document itself. */
  type: string | null = null;
  readonly items: Item[] = [];
  private depth = 0;
  /** By depth, as far as it is read: true in an object. */
  private readonly isObject: boolean[] = [];
  /** By depth: the member that is being read. */
  private readonly keys: (string | null)[] = [];
  private isName = false;
  private inText = false;
  /** Backslashes at the end of the chunk before. */
  private escapes = 0;
  /** The text that is being read; null if it is too long, or nobody asks for it. */
  private text: string | null = null;
  private item: Item | null = null;
  /** Depth of the item; 0 outside of one. */
  private itemDepth = 0;

  /** @param member that has the items @param mostItems further ones are left out, and `isFull` is set */
  constructor(
    private readonly member: string,
    private readonly mostItems = 10_000,
  ) {}

  /** Items were left out. */
  isFull = false;

  add(chunk: Buffer): void {
    let at = this.inText ? this.readText(chunk, 0) : 0;
    while (at < chunk.length) {
      const byte = chunk[at++]!;
      if (byte === QUOTE) {
        this.inText = true;
        this.text = this.depth <= DEEPEST ? '' : null;
        at = this.readText(chunk, at);
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.open(byte === OPEN_BRACE);
      else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) this.close();
      else if (byte === COMMA) this.isName = this.isObject[this.depth] === true;
      else if (byte === COLON) this.isName = false;
    }
  }

  private open(isObject: boolean): void {
    const { depth, keys } = this;
    const isMember = keys[MEMBERS] === this.member;
    if (isObject && this.item === null && isMember && this.isItemAt(depth)) {
      this.item = {};
      this.itemDepth = depth + 1;
    }
    this.isName = isObject;
    if (++this.depth > DEEPEST) return;
    this.isObject[this.depth] = isObject;
    keys[this.depth] = null;
  }

  /** The member is an object itself, or this is one of its elements. */
  private isItemAt(depth: number): boolean {
    return depth === MEMBERS || (depth === LIST && this.isObject[LIST] === false);
  }

  private close(): void {
    if (this.item !== null && this.depth === this.itemDepth) {
      if (this.items.length < this.mostItems) this.items.push(this.item);
      else this.isFull = true;
      this.item = null;
      this.itemDepth = 0;
    }
    if (this.depth > 0) this.depth--;
    this.isName = false;
  }

  /** Reads a text to its end. @param from past its opening quote, or the start of a chunk */
  private readText(chunk: Buffer, from: number): number {
    let at = from;
    for (;;) {
      const quote = chunk.indexOf(QUOTE, at);
      const end = quote === -1 ? chunk.length : quote;
      let first = end;
      while (first > from && chunk[first - 1] === BACKSLASH) first--;
      const before = end - first + (first === from ? this.escapes : 0);
      if (quote !== -1 && before % 2 === 1) {
        at = quote + 1;
        continue;
      }
      this.keep(chunk, from, end);
      this.escapes = quote === -1 ? before : 0;
      if (quote === -1) return end;
      this.inText = false;
      this.endText();
      return quote + 1;
    }
  }

  private keep(chunk: Buffer, from: number, end: number): void {
    if (this.text === null) return;
    if (this.text.length + end - from > MAX_TEXT) this.text = null;
    else this.text += chunk.toString('latin1', from, end);
  }

  private endText(): void {
    const { depth, keys, text, item, itemDepth } = this;
    if (this.isName) {
      if (depth <= DEEPEST) keys[depth] = text;
      return;
    }
    if (text === null || this.isObject[depth] !== true) return;
    const key = keys[depth];
    if (depth === MEMBERS && key === 'type') this.type = text;
    if (item === null) return;
    if (depth === itemDepth && (key === 'type' || key === 'status' || key === 'container_id'))
      item[key] = text;
    else if (depth === itemDepth + 1 && keys[itemDepth] === 'action' && key === 'type') item.action = text;
  }
}
