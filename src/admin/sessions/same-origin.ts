import { ForbiddenException } from '@nestjs/common';
import type { Request } from 'express';

/**
 * Rejects a request with a session cookie that a page of another origin may have made: such a page can send neither JSON
 * nor a header of its own without a preflight, which is never allowed here, and the browser names the origin.
 *
 * @throws ForbiddenException
 */
export function mustBeFromConsole(req: Request): void {
  if (!/^application\/json\s*(;|$)/i.test(req.headers['content-type'] ?? '')) {
    throw new ForbiddenException('A change with a session cookie needs "Content-Type: application/json".');
  }
  if (req.headers['x-postern-console'] !== '1') {
    throw new ForbiddenException('A change with a session cookie needs "X-Postern-Console: 1".');
  }
  if (originOf(req) !== 'same') {
    throw new ForbiddenException(
      'A change with a session cookie needs "Sec-Fetch-Site: same-origin" or the Origin of this gateway.',
    );
  }
}

/** Rejects a request that a page of another origin made. Requests of other programs pass. @throws ForbiddenException */
export function mustNotBeCrossOrigin(req: Request): void {
  if (originOf(req) === 'other') throw new ForbiddenException('Sign in from a page of this gateway.');
}

/**
 * Which origin a request came from. Browsers send Sec-Fetch-Site over HTTPS and on loopback; over plain HTTP elsewhere only
 * Origin tells.
 */
function originOf(req: Request): 'same' | 'other' | 'unknown' {
  const site = req.headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin' ? 'same' : 'other';
  const { origin, host } = req.headers;
  if (origin === undefined) return 'unknown';
  return URL.canParse(origin) && host !== undefined && new URL(origin).host === host.toLowerCase()
    ? 'same'
    : 'other';
}
