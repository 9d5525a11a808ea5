import { JsonWalk } from './json-walk.js';
import { parseValue } from './kept-values.js';
import { MEMBER_NAMES } from './member-names.js';
import { MultipartModelScan, startsMultipart } from './multipart-model-scan.js';

/** Reads a request body once while it passes, in chunks of any size, for everything that is read from it. */
export class RequestReader {
  /** The walk over a JSON body; null before the first chunk, and for a form. */
  json: JsonWalk | null = null;
  private form: MultipartModelScan | null = null;
  private named: string | null = null;

  /** @param chunk read, not kept */
  add(chunk: Buffer): void {
    if (chunk.length === 0) return;
    if (this.json === null && this.form === null) {
      if (startsMultipart(chunk)) this.form = new MultipartModelScan();
      else this.json = new JsonWalk(MEMBER_NAMES);
    }
    if (this.json !== null) this.json.add(chunk);
    else this.form!.add(chunk);
  }

  /** The body has ended. */
  finish(): void {
    this.json?.finish();
  }

  /**
   * The model that the part of the body names that has passed: the first text in a member or a part `model`, for the row of
   * a call. Another parser may read another one; a call policy asks JsonMembers. Null if none was found (yet).
   */
  get model(): string | null {
    if (this.form !== null) return this.form.model;
    return (this.named ??= this.json === null ? null : firstModel(this.json));
  }
}

function firstModel(json: JsonWalk): string | null {
  for (const value of json.all('model')) {
    const model = value.name === 'model' ? parseValue(value) : null;
    if (typeof model === 'string' && model !== '') return model;
  }
  return null;
}
