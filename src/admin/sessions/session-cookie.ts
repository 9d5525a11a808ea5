import { BadRequestException } from '@nestjs/common';
import type { Request } from 'express';

/** The prefix makes browsers refuse the cookie from another host or without TLS (RFC 6265bis 4.1.3). */
const SECURE_NAME = '__Host-postern';
/** For plain HTTP on loopback, where browsers set no cookie with that prefix. */
const LOOPBACK_NAME = 'postern_session';

const VALUE = /^[A-Za-z0-9_-]{43}$/;
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i;

/** @param publicUrl PUBLIC_URL @returns the value of the session cookie; null if there is none, several, or a malformed one. */
export function sessionCookieOf(req: Request, publicUrl: string | undefined): string | null {
  const cookies = (req.headers.cookie ?? '').split(';').map((pair) => pair.trim());
  const named = (name: string) => cookies.filter((pair) => pair.startsWith(`${name}=`));
  const found = named(SECURE_NAME);
  // Another host of the same domain could have set the cookie without the prefix.
  if (found.length === 0 && isPlainLoopback(req, publicUrl)) found.push(...named(LOOPBACK_NAME));
  if (found.length !== 1) return null;
  const value = found[0]!.slice(found[0]!.indexOf('=') + 1);
  return VALUE.test(value) ? value : null;
}

/**
 * The Set-Cookie value of a session.
 *
 * @param publicUrl PUBLIC_URL
 * @param value null removes the cookie
 * @throws BadRequestException over plain HTTP from another machine: the browser would drop the cookie
 */
export function sessionCookie(
  req: Request,
  publicUrl: string | undefined,
  value: string | null,
  maxAgeSeconds: number,
): string {
  const { origin } = req.headers;
  const isPlain = isPlainLoopback(req, publicUrl) && !origin?.startsWith('https:');
  if (value !== null && !isPlain && origin?.startsWith('http:')) {
    throw new BadRequestException(
      'Browsers keep a session only over HTTPS or on this machine. Open the console over HTTPS, or at http://localhost.',
    );
  }
  const [name, secure] = isPlain ? [LOOPBACK_NAME, ''] : [SECURE_NAME, ' Secure;'];
  const age = value === null ? 0 : maxAgeSeconds;
  return `${name}=${value ?? ''}; Path=/; Max-Age=${age}; HttpOnly;${secure} SameSite=Strict`;
}

/** True if the browser reaches this gateway over plain HTTP on its own machine, not through a proxy. */
function isPlainLoopback({ headers }: Request, publicUrl: string | undefined): boolean {
  if (publicUrl !== undefined) return publicUrl.startsWith('http:');
  const isForwarded = headers['x-forwarded-for'] !== undefined || headers['x-forwarded-proto'] !== undefined;
  return !isForwarded && LOOPBACK.test(headers.host ?? '');
}
