import { nextElement, ObjectCursor, openObject, parseValue } from '../json-cursor.js';
import { readJsonUsage } from '../usage/json-usage.js';
import { normaliseUsage } from '../usage/normalise-usage.js';
import type { CopiedBody } from '../usage/plain-copy.js';
import { ResponseSums } from '../usage/response-sums.js';
import { NO_USAGE, type ResponseUsage, type SeenJob } from '../usage/token-usage.js';
import { atBatchTier, usageOfResult } from './batch-results.js';

/** Endpoints that create a job, or return one, beside `POST …/responses`, whose usage is that of a call otherwise. */
export const JOB_ENDPOINT =
  /\/(?:batches|batch\/jobs|videos)(?:\/[^/]+)?(?:\/(?:cancel|remix))?$|\/responses\/[^/]+(?:\/cancel)?$|:batchGenerateContent$/;

const CREATES = /\/(?:batches|batch\/jobs|videos|videos\/[^/]+\/remix|responses)$|:batchGenerateContent$/;
const ID = /^[\w.-]{1,200}$/;
const GEMINI_NAME = /^batches\/[\w-]{1,200}$/;
const GEMINI_FILE = /^files\/[\w-]{1,200}$/;

type Members = Readonly<Record<string, unknown>>;

/**
 * Reads the job that a response describes.
 *
 * @param kept its body; of one that was copied in part, the start has the state
 * @param endpoint raw path after `/p/<provider>`, without the query: of the call, or of the job itself
 * @returns null if it describes none, or one that is not certain, as where the body was cut
 */
export function readJob(kept: CopiedBody, endpoint: string): SeenJob | null {
  const cursor = openObject(kept.head);
  if (cursor === null) return null;
  const members: Record<string, unknown> = {};
  let response: ObjectCursor | null = null;
  while (cursor.next()) {
    for (const name of MEMBERS) {
      if (!cursor.isKey(name)) continue;
      members[name] = parseValue(kept.head, cursor.valueSpan());
      if (name === 'response') response = cursor.object();
    }
  }
  const isAll = cursor.end !== -1;
  if (kept.whole && !isAll) return null;
  const isNew = CREATES.test(endpoint);
  if (members.object === 'response') return responseOf(members, kept, endpoint, isNew);
  if (members.object === 'video') return videoOf(members, endpoint, isNew);
  if (members.object === 'batch') return batchOf(members, endpoint, isNew, isAll);
  if (members.type === 'message_batch') return messageBatchOf(members, endpoint, isNew);
  if (typeof members.name === 'string' && GEMINI_NAME.test(members.name))
    return geminiBatchOf(members, kept.head, response, endpoint, isNew, isAll);
  return null;
}

const MEMBERS = [
  ...['id', 'object', 'type', 'name', 'status', 'processing_status', 'done', 'background', 'model', 'usage'],
  ...['request_counts', 'completed_requests', 'succeeded_requests', 'output_file_id', 'output_file'],
  ...['metadata', 'response', 'error', 'seconds', 'size'],
];

/** Those of OpenAI and Azure, and in capitals those of Mistral. */
const BATCH_ENDS = /^(?:completed|failed|expired|cancelled|SUCCESS|FAILED|TIMEOUT_EXCEEDED|CANCELLED)$/;

/** OpenAI, Azure OpenAI, Groq, Together; Mistral, which names the members otherwise. */
function batchOf(members: Members, endpoint: string, isNew: boolean, isAll: boolean): SeenJob | null {
  const path = pathOf(members.id, endpoint, isNew);
  if (path === null) return null;
  const counts = members.request_counts as { completed?: unknown } | undefined | null;
  const done = counts?.completed ?? members.succeeded_requests ?? members.completed_requests;
  const count = typeof done === 'number' ? done : 0;
  const file = members.output_file_id ?? members.output_file;
  const isEnded = BATCH_ENDS.test(String(members.status));
  const hasFile = typeof file === 'string' && ID.test(file);
  // OpenAI: the file of its requests was not valid.
  const hasNotRun = members.status === 'failed' && done === undefined;
  const usage = isEnded ? usageOfBatch(members, count) : null;
  return {
    kind: 'batch',
    ...path,
    isNew,
    isEnded,
    isFree: isEnded && isAll && usage === null && !hasFile && (done === 0 || hasNotRun),
    usage,
    results: hasFile
      ? { path: path.path.replace(/\/(?:batches|batch\/jobs)\/[^/]+$/, `/files/${file}/content`), count }
      : null,
  };
}

/** The sum that OpenAI reports since September 2025. How long each request was is not known. */
function usageOfBatch({ usage, model }: Members, responses: number): ResponseUsage | null {
  if (typeof usage !== 'object' || usage === null) return null;
  const sum = normaliseUsage(usage as Members, '');
  if (sum === null || (sum.promptTokens ?? 0) + (sum.completionTokens ?? 0) === 0) return null;
  const named = { ...sum, model: typeof model === 'string' ? model : null };
  const batch = atBatchTier(named);
  const { responses: _, ...extra } = batch.extra ?? {};
  if (responses <= 1) return batch;
  // As of a WebSocket: the sum of so many, none of them longer than all together.
  const counts = {
    prompt_tokens: sum.promptTokens,
    cached_tokens: sum.cachedTokens,
    cache_write_tokens: sum.cacheWriteTokens,
    completion_tokens: sum.completionTokens,
    reasoning_tokens: sum.reasoningTokens,
  };
  const reported = Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== null));
  const size = { responses, shortest: 0, longest: sum.promptTokens ?? 0 };
  return { ...batch, extra: { ...batch.extra, responses: [{ ...size, ...reported, ...extra }] } };
}

/** Anthropic. Requests that failed, expired or were cancelled are not billed. */
function messageBatchOf(members: Members, endpoint: string, isNew: boolean): SeenJob | null {
  const path = pathOf(members.id, endpoint, isNew);
  if (path === null) return null;
  const counts = (members.request_counts ?? {}) as Record<string, unknown>;
  const isEnded = members.processing_status === 'ended';
  const isFree = isEnded && counts.succeeded === 0;
  // Its results have those that failed, too.
  const count = Object.values(counts).reduce<number>((sum, n) => sum + (typeof n === 'number' ? n : 0), 0);
  const results = isEnded && !isFree ? { path: `${path.path}/results`, count } : null;
  return { kind: 'batch', ...path, isNew, isEnded, isFree, usage: null, results };
}

/** A long-running operation of the Gemini API. */
function geminiBatchOf(
  members: Members,
  head: Buffer,
  response: ObjectCursor | null,
  endpoint: string,
  isNew: boolean,
  isAll: boolean,
): SeenJob {
  const id = members.name as string;
  const path = `${endpoint.replace(/\/(?:models|batches)\/[^/]*$/, '')}/${id}`;
  const metadata = (members.metadata ?? {}) as { state?: unknown; model?: unknown; batchStats?: unknown };
  // Its numbers are texts (int64 of protobuf), and none is 0.
  const stats = (metadata.batchStats ?? {}) as { successfulRequestCount?: unknown };
  const succeeded = Number(stats.successfulRequestCount ?? 0);
  const isEnded =
    members.done === true || /_(?:SUCCEEDED|FAILED|CANCELLED|EXPIRED)$/.test(String(metadata.state));
  // Its metadata may repeat the responses, and is not read then.
  const hasFailed =
    members.metadata !== undefined && succeeded === 0 && !/_SUCCEEDED$/.test(String(metadata.state));
  const answered = (members.response ?? {}) as { responsesFile?: unknown };
  const file = answered.responsesFile;
  const hasFile = typeof file === 'string' && GEMINI_FILE.test(file);
  const model = typeof metadata.model === 'string' ? metadata.model.replace(/^models\//, '') : null;
  return {
    kind: 'batch',
    id,
    path,
    isNew,
    isEnded,
    isFree: isEnded && isAll && hasFailed && members.response === undefined && response === null,
    usage: isEnded && response !== null ? inlinedUsage(head, response, model) : null,
    results: hasFile
      ? {
          path: `/download${path.replace(/\/batches\/[^/]+$/, '')}/${file}:download?alt=media`,
          count: succeeded,
        }
      : null,
  };
}

/** Of a batch whose responses stand in the job itself. */
function inlinedUsage(head: Buffer, response: ObjectCursor, model: string | null): ResponseUsage | null {
  const outer = member(response, 'inlinedResponses');
  const inner = outer?.object();
  const list = (inner ? member(inner, 'inlinedResponses') : outer)?.arraySpan();
  if (!list) return null;
  const sums = new ResponseSums();
  let counted = 0;
  for (let at = nextElement(head, list[0], true); at !== -1;) {
    const element = openObject(head, at);
    if (element === null) break;
    while (element.next());
    if (element.end === -1) return null;
    const usage = usageOfResult(head.subarray(at, element.end));
    if (usage !== null) {
      counted++;
      sums.add(atBatchTier({ ...usage, model: usage.model ?? model }));
    }
    at = nextElement(head, element.end, false);
  }
  return counted === 0 ? null : sums.total;
}

function member(cursor: ObjectCursor, name: string): ObjectCursor | null {
  while (cursor.next()) if (cursor.isKey(name)) return cursor;
  return null;
}

/** OpenAI and Azure OpenAI, with `"background": true`. */
function responseOf(members: Members, kept: CopiedBody, endpoint: string, isNew: boolean): SeenJob | null {
  const path = pathOf(members.id, endpoint, isNew);
  if (path === null || (isNew && members.background !== true)) return null;
  const isEnded = /^(?:completed|incomplete|failed|cancelled)$/.test(String(members.status));
  const usage = isEnded ? readJsonUsage(kept, '/responses') : null;
  const isCounted = usage !== null && (usage.promptTokens ?? usage.completionTokens) !== null;
  return {
    kind: 'response',
    ...path,
    isNew,
    isEnded,
    isFree: false,
    usage: isCounted ? usage : null,
    results: null,
  };
}

/** OpenAI. A video that failed is not billed. */
function videoOf(members: Members, endpoint: string, isNew: boolean): SeenJob | null {
  const path = pathOf(members.id, endpoint, isNew);
  if (path === null) return null;
  const { status } = members;
  const isEnded = status === 'completed' || status === 'failed';
  const usage = status === 'completed' ? usageOfVideo(members) : null;
  return { kind: 'video', ...path, isNew, isEnded, isFree: status === 'failed', usage, results: null };
}

/** The seconds are a text. Those of a video that was extended or remixed are its own. */
function usageOfVideo({ model, seconds, size }: Members): ResponseUsage | null {
  const length = Number(seconds);
  if (!Number.isInteger(length) || length < 1 || length > 86_400) return null;
  const extra = { video_seconds: length, ...(typeof size === 'string' && { size }) };
  return { ...NO_USAGE, model: typeof model === 'string' ? model : null, extra };
}

/** @returns null also if the endpoint of a job has another one */
function pathOf(id: unknown, endpoint: string, isNew: boolean): { id: string; path: string } | null {
  if (typeof id !== 'string' || !ID.test(id)) return null;
  if (!isNew && !endpoint.replace(/\/cancel$/, '').endsWith(`/${id}`)) return null;
  const list = isNew
    ? endpoint.replace(/\/[^/]+\/remix$/, '')
    : endpoint.replace(/\/cancel$/, '').replace(/\/[^/]+$/, '');
  return { id, path: `${list}/${id}` };
}
