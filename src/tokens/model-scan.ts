import { findTrailing, isAtEnd, openObject, parseText } from './json-cursor.js';

/** Clients that send `model` first have it within these bytes. */
const START_BYTES = 1_024;

/**
 * Finds the model that a whole JSON request names in its own `model` member. The body is scanned, not parsed, and large ones
 * from both ends: some clients send `model` first, others (the Python SDKs of OpenAI and Anthropic) after the messages.
 *
 * @returns null for anything that is not a JSON object with a string there; either one, if there are two
 */
export function scanModel(body: Buffer): string | null {
  if (body.length <= START_BYTES) return scan(body);
  const first = scan(body.subarray(0, START_BYTES));
  if (first !== null || openObject(body) === null) return first;
  const last = findTrailing(body, 'model', isAtEnd);
  return last?.next() ? parseText(body, last.textSpan()) : scan(body);
}

function scan(json: Buffer): string | null {
  const cursor = openObject(json);
  while (cursor?.next()) {
    if (cursor.isKey('model')) return parseText(json, cursor.textSpan());
  }
  return null;
}

/**
 * Paths that name the model: of the Gemini API (`POST /v1beta/{model=models/*}:generateContent`) and Vertex AI, which has
 * more segments before it; of Bedrock; and of Azure OpenAI, by the name of the deployment.
 */
const MODEL_IN_PATH =
  /\/models\/([^/]+):[A-Za-z]+$|\/model\/([^/]+)\/(?:converse|invoke|count-tokens)[a-z-]*$|\/deployments\/([^/]+)\//;

/** Returns the model named in a path; null if there is none. @param path raw, without the query */
export function modelFromPath(path: string): string | null {
  const [, gemini, bedrock, azure] = MODEL_IN_PATH.exec(path) ?? [];
  const name = gemini ?? bedrock ?? azure;
  if (name === undefined) return null;
  // A copy: a slice keeps the whole path alive.
  if (!name.includes('%')) return Buffer.from(name).toString();
  try {
    return decodeURIComponent(name);
  } catch {
    return null;
  }
}
