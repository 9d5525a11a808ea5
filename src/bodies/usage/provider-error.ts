import type { Span } from '../bytes.js';
import { nextElement, type ObjectCursor, openObject, parseValue } from '../json-cursor.js';
import type { CopiedBody } from './plain-copy.js';

/** Why a provider failed a call, in its own two words. */
export interface ProviderError {
  readonly type: string | null;
  readonly code: string | null;
}

/** A token of a provider. Anything longer, or with other characters, is text, which is never stored. */
const TOKEN = /^[\w.:-]{1,64}$/;
/** An event that reports an error says so at its start. In a text, the quotes are escaped. */
const SIGN_LENGTH = 256;
const IS_ERROR_EVENT = /"error"\s*:\s*\{|"type"\s*:\s*"(?:error|response\.failed)"|"status"\s*:\s*"failed"/;
/** The error is in the last event, or before one that only ends the stream. */
const LAST_EVENTS = 3;

/**
 * Reads the error of a JSON response: `error.type` and `error.code` of OpenAI, Azure and Anthropic, `error.status` and
 * `error.code` of Gemini, `type` and `code` at the top of Mistral and vLLM, `__type` of Bedrock. Only of its start, if
 * it is larger than the copy.
 *
 * @param isFailed the status says that the response is an error: without it, only `error` is one
 * @returns null if it reports none
 */
export function readJsonError({ head }: CopiedBody, isFailed: boolean): ProviderError | null {
  // Gemini puts the error of a stream without `alt=sse` into an array.
  const element = nextElement(head, 0, true);
  const cursor = openObject(head, element === -1 ? 0 : element);
  return cursor === null ? null : errorOf(head, cursor, isFailed);
}

/**
 * Reads the error of the event that ends a stream: `error` of all providers, and `response.failed` of OpenAI's responses.
 *
 * @param events the data of the last events
 */
export function readEventError(events: readonly string[]): ProviderError | null {
  for (let i = events.length - 1; i >= 0 && i >= events.length - LAST_EVENTS; i--) {
    const data = events[i]!;
    if (!IS_ERROR_EVENT.test(data.slice(0, SIGN_LENGTH))) continue;
    const json = Buffer.from(data);
    const cursor = openObject(json);
    const error = cursor === null ? null : errorOf(json, cursor, false);
    if (error !== null) return error;
  }
  return null;
}

/** The error that a header reports: Bedrock's `x-amzn-errortype`, which may have a URL behind the name. */
export function errorOfHeader(errorType: string | undefined): ProviderError | null {
  return errorOrNull(tokenOf(errorType?.split(':', 1)[0]), null);
}

/** What has the error in OpenAI's events: `response.failed`, and `response.done` of the Realtime API. */
const CARRIERS = ['response', 'status_details'] as const;
/** `error` in `status_details` in `response`: deeper ones would be walked through once for each level. */
const MAX_DEPTH = 2;

function errorOf(json: Buffer, cursor: ObjectCursor, isFailed: boolean, depth = 0): ProviderError | null {
  const top = new ErrorMembers(json);
  // Of a repeated name the last value is read, once.
  let error: ObjectCursor | null = null;
  let carrier: ObjectCursor | null = null;
  let isErrorEvent = false;
  while (cursor.next()) {
    if (cursor.isKey('error')) error = cursor.object() ?? error;
    else if (depth < MAX_DEPTH && CARRIERS.some((name) => cursor.isKey(name)))
      carrier = cursor.object() ?? carrier;
    // The event `error` of OpenAI's responses has its code beside it.
    else if (cursor.isKey('type') && cursor.isText('error')) isErrorEvent = true;
    else top.add(cursor);
  }
  const inner = error === null ? null : membersOf(json, error);
  const carried = inner ?? (carrier === null ? null : errorOf(json, carrier, false, depth + 1));
  return carried ?? (isFailed || isErrorEvent ? top.error : null);
}

function membersOf(json: Buffer, cursor: ObjectCursor): ProviderError | null {
  const members = new ErrorMembers(json);
  while (cursor.next()) members.add(cursor);
  return members.error;
}

/** The members of an object that say what kind of error it is. */
class ErrorMembers {
  private readonly spans: { type?: Span; status?: Span; code?: Span; __type?: Span } = {};

  constructor(private readonly json: Buffer) {}

  add(cursor: ObjectCursor): void {
    const { spans } = this;
    if (cursor.isKey('type')) spans.type = valueOf(cursor) ?? spans.type;
    else if (cursor.isKey('code')) spans.code = valueOf(cursor) ?? spans.code;
    // Gemini's name of the error; its code is the HTTP status.
    else if (cursor.isKey('status')) spans.status = cursor.textSpan() ?? spans.status;
    // Of AWS: `com.amazon.coral.service#ThrottlingException`.
    else if (cursor.isKey('__type')) spans.__type = cursor.textSpan() ?? spans.__type;
  }

  get error(): ProviderError | null {
    const { type, status, code, __type: aws } = this.spans;
    const named = this.valueOf(aws);
    const exception = typeof named === 'string' ? tokenOf(named.replace(/^.*#/, '')) : null;
    return errorOrNull(
      tokenOf(this.valueOf(type)) ?? tokenOf(this.valueOf(status)) ?? exception,
      tokenOf(this.valueOf(code)),
    );
  }

  private valueOf(span: Span | undefined): unknown {
    return parseValue(this.json, span ?? null);
  }
}

function valueOf(cursor: ObjectCursor): Span | null {
  return cursor.textSpan() ?? cursor.numberSpan();
}

function tokenOf(value: unknown): string | null {
  const text = Number.isSafeInteger(value) ? String(value) : value;
  return typeof text === 'string' && TOKEN.test(text) ? text : null;
}

function errorOrNull(type: string | null, code: string | null): ProviderError | null {
  return type === null && code === null ? null : { type, code };
}
