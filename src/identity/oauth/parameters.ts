import type { Request, Response } from 'express';
import { hasRepeatedMembers } from '../../bodies/repeated-members.js';
import { patience } from '../../platform/patience.js';

const MAX_BYTES = 32_768;
const PATIENCE = patience('parameters of a token request', 10_000);
/** Clients send fewer than ten. */
const MAX_PARAMETERS = 100;

/** RFC 6749 5.2 and 4.1.2.1, RFC 8628 3.5. */
export type OauthErrorCode =
  | 'invalid_request'
  | 'invalid_grant'
  | 'unsupported_grant_type'
  | 'temporarily_unavailable'
  | 'authorization_pending'
  | 'slow_down'
  | 'access_denied'
  | 'expired_token';

/** A request that is answered with an error of RFC 6749 5.2. */
export class OauthError extends Error {
  override readonly name = 'OauthError';

  /** @param description for the caller; must not hold what was sent */
  constructor(
    readonly code: OauthErrorCode,
    readonly description: string,
    readonly status = 400,
    readonly retryAfter: number | null = null,
  ) {
    super(description);
  }
}

/** The parameters of a request; unknown ones are ignored (RFC 6749 3.2). */
export class Parameters {
  constructor(private readonly values: ReadonlyMap<string, readonly unknown[]>) {}

  /**
   * One without a value counts as absent (RFC 6749 3.2).
   *
   * @throws OauthError if it is given twice, or is not text
   */
  get(name: string): string | null {
    const given = this.values.get(name) ?? [];
    if (given.length > 1) throw new OauthError('invalid_request', `The parameter ${name} is given twice.`);
    const [value] = given;
    if (value === undefined || value === null || value === '') return null;
    if (typeof value !== 'string')
      throw new OauthError('invalid_request', `The parameter ${name} is not text.`);
    return value;
  }

  /** @throws OauthError if it is absent */
  required(name: string): string {
    const value = this.get(name);
    if (value === null) throw new OauthError('invalid_request', `The parameter ${name} is missing.`);
    return value;
  }
}

/**
 * Reads the parameters of a request from its body, a form or JSON.
 *
 * @throws OauthError
 */
export async function readParameters(req: Request, res: Response): Promise<Parameters> {
  const [type = ''] = (req.headers['content-type'] ?? '').split(';');
  const isJson = type.trim().toLowerCase() === 'application/json';
  if (!isJson && type.trim().toLowerCase() !== 'application/x-www-form-urlencoded')
    throw new OauthError('invalid_request', 'Send the parameters as application/x-www-form-urlencoded.');
  if (req.headers['content-encoding'] !== undefined)
    throw new OauthError('invalid_request', 'Send the parameters without a content encoding.');
  const body = await readBody(req, res);
  const values = isJson ? membersOf(body) : [...new URLSearchParams(body.toString())];
  if (values.length > MAX_PARAMETERS)
    throw new OauthError('invalid_request', `The body has more than ${MAX_PARAMETERS} parameters.`);
  const all = new Map<string, unknown[]>();
  for (const [name, value] of values) all.set(name, [...(all.get(name) ?? []), value]);
  return new Parameters(all);
}

function membersOf(body: Buffer): [string, unknown][] {
  let value: unknown;
  try {
    value = JSON.parse(body.toString());
  } catch {
    throw new OauthError('invalid_request', 'The body is not JSON.');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new OauthError('invalid_request', 'The body is not a JSON object.');
  if (hasRepeatedMembers(body, value)) throw new OauthError('invalid_request', 'A parameter is given twice.');
  return Object.entries(value);
}

async function readBody(req: Request, res: Response): Promise<Buffer> {
  const tooLarge = () =>
    new OauthError('invalid_request', `The body is larger than ${MAX_BYTES} bytes.`, 413);
  if (Number(req.headers['content-length'] ?? 0) > MAX_BYTES) throw tooLarge();
  if (req.headers.expect !== undefined && req.httpVersionMinor !== 0) res.writeContinue();
  const chunks: Buffer[] = [];
  let length = 0;
  await new Promise<void>((resolve, reject) => {
    const late = () => reject(new OauthError('invalid_request', 'The body did not arrive in time.', 408));
    const timer = setTimeout(late, PATIENCE.ms).unref();
    const settle = (error?: Error) => {
      clearTimeout(timer);
      req.off('data', onData).off('close', onClose);
      if (error === undefined) resolve();
      else reject(error);
    };
    const onData = (chunk: Buffer) => {
      length += chunk.length;
      if (length > MAX_BYTES) settle(tooLarge());
      else chunks.push(chunk);
    };
    req.on('data', onData);
    req.once('end', () => settle());
    req.once('error', settle);
    const onClose = () => settle(new OauthError('invalid_request', 'The body is not whole.'));
    req.once('close', onClose);
  });
  return Buffer.concat(chunks);
}
