import type { NamesByLength } from './folded-names.js';
import { JsonWalk } from './json-walk.js';
import { type JsonValue, parseValue } from './kept-values.js';
import {
  MEMBER_NAMES,
  MEMBER_NAMES_AND_UNITS,
  OF_OUTPUT,
  ROW_NAMES,
  ROW_NAMES_AND_UNITS,
} from './member-names.js';
import { choices, maxOutputTokens } from './output-limits.js';
import { MultipartModelScan, startsMultipart } from './multipart-model-scan.js';

/** Reads a request body once while it passes, in chunks of any size, for everything that is read from it. */
export class RequestReader {
  /** The walk over a JSON body; null before the first chunk, and for a form. */
  json: JsonWalk | null = null;
  private form: MultipartModelScan | null = null;
  private named: string | null = null;
  private limit: number | null = null;
  private outputs = 1;

  /**
   * @param isCertain false to read only what a row says, which takes less time
   * @param hasUnits the request says how many units with a price it asks for
   */
  constructor(
    private isCertain = true,
    private readonly hasUnits = false,
  ) {}

  /** JsonMembers is asked about the body. To be called before the first chunk. */
  mustBeCertain(): void {
    this.isCertain = true;
  }

  /** @param chunk read, not kept */
  add(chunk: Buffer): void {
    if (chunk.length === 0) return;
    if (this.json === null && this.form === null) {
      if (startsMultipart(chunk)) this.form = new MultipartModelScan();
      else this.json = new JsonWalk(this.names, this.isCertain);
    }
    if (this.json !== null) this.json.add(chunk);
    else this.form!.add(chunk);
  }

  private get names(): NamesByLength {
    if (this.isCertain) return this.hasUnits ? MEMBER_NAMES_AND_UNITS : MEMBER_NAMES;
    return this.hasUnits ? ROW_NAMES_AND_UNITS : ROW_NAMES;
  }

  /** The body has ended. */
  finish(): void {
    this.json?.finish();
  }

  /**
   * The model that the part of the body names that has passed, for the row of a call: of members `model` the last one, as
   * most parsers have it; of a form the first part. Another parser may read another one; a call policy asks JsonMembers.
   * Null if none was found (yet).
   */
  get model(): string | null {
    if (this.form !== null) return this.form.model;
    const member = this.json?.all('model').findLast(({ name }) => name === 'model');
    if (member !== undefined) this.named = textOf(member);
    return this.named;
  }

  /**
   * The most output tokens that the part of the body allows that has passed, with all choices; null: it names none. As for
   * the model, another parser may read another one: it bounds a cost, and admits nothing.
   */
  outputLimit(endpoint: string): number | null {
    const { json } = this;
    // Most chunks have none of them.
    if (json === null || !OF_OUTPUT.some((name) => json.all(name).length > 0))
      return this.limit && this.limit * this.outputs;
    const members = {
      all: (name: string) => json.all(name).map((value) => ({ ...value, value: parseValue(value) })),
    };
    this.limit = maxOutputTokens(endpoint, members) ?? this.limit;
    this.outputs = Math.max(this.outputs, choices(endpoint, members));
    return this.limit && this.limit * this.outputs;
  }

  /** How many outputs outputLimit() has found that the request asks for. */
  get choices(): number {
    return this.outputs;
  }

  /** The part of the body that has passed asks for a response with which the provider goes on after it has responded. */
  get isBackground(): boolean {
    const member = this.json?.all('background').findLast(({ name }) => name === 'background');
    return member !== undefined && parseValue(member) === true;
  }

  /** True if all of a JSON body was read, and no input comes from elsewhere, see OutsideInput. */
  get showsInput(): boolean {
    const { json } = this;
    return json !== null && json.isWhole && !json.outside.hasInput && !json.outside.hasTools;
  }

  /** True unless the body was read and asks for no tools that the provider runs. A form cannot ask for any. */
  get mayAskForTools(): boolean {
    const { json } = this;
    return this.form === null && (json === null || json.outside.hasTools || !json.isWhole);
  }

  /** What the row says of the body so far is known: lets go of the rest, unless JsonMembers is asked. */
  forget(): void {
    if (!this.isCertain) this.json?.values.forget();
  }
}

function textOf(member: JsonValue): string | null {
  const value = parseValue(member);
  return typeof value === 'string' && value !== '' ? value : null;
}
