/** What is wrong with one field of a request. */
export interface ApiErrorDetail {
  field: string;
  message: string;
}

interface Given {
  status: number;
  code: string;
  details?: readonly ApiErrorDetail[];
  response?: Response;
  cause?: unknown;
}

/** Every request that did not succeed, except one that its caller aborted. `message` says what happened and what to do. */
export class PosternApiError extends Error {
  override readonly name: string = 'PosternApiError';
  /** HTTP status; 0 without a whole response. */
  readonly status: number;
  /**
   * Code for programs, for example `not_found`. Of the client itself: `unreachable` for no whole response,
   * `unexpected_response` for one that is not of the admin API.
   */
  readonly code: string;
  /** The fields that are wrong. */
  readonly details: readonly ApiErrorDetail[];
  /** `x-request-id` of the response, or the ID that a response with status 500 names for the gateway's log. */
  readonly requestId: string | null;
  /** Seconds after which the gateway wants the request again. */
  readonly retryAfter: number | null;

  /** @internal */
  constructor(message: string, { status, code, details = [], response, cause }: Given) {
    super(message, { cause });
    this.status = status;
    this.code = code;
    this.details = details;
    this.requestId = response?.headers.get('x-request-id') ?? LOGGED_AS.exec(message)?.[1] ?? null;
    const seconds = response?.headers.get('retry-after') ?? '';
    this.retryAfter = /^\d+$/.test(seconds) ? Number(seconds) : null;
  }
}

const LOGGED_AS = /^Internal gateway error\. Search the gateway log for ([\w-]+)\.$/;

/** The error of a response whose status is not of the 200s. */
export async function errorOf(response: Response, url: string): Promise<PosternApiError> {
  const { status } = response;
  const { message, code, type, details } = errorIn(await response.text());
  // Other APIs have errors with a message and a code too. Those of /self/v1 have a type and no details.
  const isOurs = Array.isArray(details) || (type !== undefined && response.headers.has('x-gateway-error'));
  if (typeof message === 'string' && typeof code === 'string' && isOurs)
    return new PosternApiError(message, { status, code, details, response });
  const location = response.headers.get('location');
  return notOurs(url, ` (status ${status}${location === null ? '' : `, redirect to ${location}`})`, response);
}

/** @param what of the response is not the admin API's, in brackets */
export function notOurs(url: string, what: string, response: Response, cause?: unknown): PosternApiError {
  return new PosternApiError(
    `${url} does not respond like the admin API of a gateway${what}; check the URL`,
    { status: response.status, code: 'unexpected_response', response, cause },
  );
}

function errorIn(text: string): Partial<ApiErrorDetail> & {
  code?: unknown;
  type?: unknown;
  details?: readonly ApiErrorDetail[];
} {
  try {
    return (JSON.parse(text) as { error?: object } | null)?.error ?? {};
  } catch {
    // A proxy in between may respond with HTML.
    return {};
  }
}
