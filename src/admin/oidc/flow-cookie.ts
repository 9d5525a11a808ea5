import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Request } from 'express';

/** `console`: a session of the console. `device`: a client, whose request a person confirms. */
export type FlowPurpose = 'console' | 'device';

/** What the callback of a sign-in must know of its beginning. */
export interface Flow {
  state: string;
  nonce: string;
  /** PKCE code verifier. */
  verifier: string;
  /** What for: the callback of a sign-in serves nothing else. */
  purpose: FlowPurpose;
  /** Path of the page to go to after signing in, or the ID of the request of a client. */
  returnTo: string;
  /** When it ends (Unix ms). */
  ends: number;
}

const LIFETIME_S = 600;

/**
 * The cookie of a sign-in at an OpenID provider. `Lax`: browsers send it with the redirect from the provider, which they
 * do not with a `Strict` cookie. It is signed, so that nobody can plant one with a lifetime or a return path of their own.
 */
export class FlowCookie {
  private readonly name: string;
  private readonly attributes: string;

  constructor(
    publicUrl: string,
    private readonly key: string,
  ) {
    const isSecure = publicUrl.startsWith('https:');
    this.name = isSecure ? '__Host-postern-oidc' : 'postern_oidc';
    this.attributes = `Path=/; HttpOnly;${isSecure ? ' Secure;' : ''} SameSite=Lax`;
  }

  /** The Set-Cookie value of a new sign-in. */
  set(flow: Omit<Flow, 'ends'>): string {
    const content = JSON.stringify({ ...flow, ends: Date.now() + LIFETIME_S * 1_000 } satisfies Flow);
    const payload = Buffer.from(content).toString('base64url');
    return `${this.name}=${payload}.${this.sign(payload)}; Max-Age=${LIFETIME_S}; ${this.attributes}`;
  }

  /** The Set-Cookie value that removes it. */
  remove(): string {
    return `${this.name}=; Max-Age=0; ${this.attributes}`;
  }

  /** The sign-in that this browser began; null if there is none, several, one that has ended, or one not made here. */
  of(req: Request): Flow | null {
    const cookies = (req.headers.cookie ?? '').split(';').map((pair) => pair.trim());
    const found = cookies.filter((pair) => pair.startsWith(`${this.name}=`));
    if (found.length !== 1) return null;
    const [payload = '', signature = ''] = found[0]!.slice(this.name.length + 1).split('.');
    const expected = Buffer.from(this.sign(payload));
    const given = Buffer.from(signature);
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return null;
    const flow = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Flow;
    return flow.ends > Date.now() ? flow : null;
  }

  private sign(payload: string): string {
    return createHmac('sha256', this.key).update(`oidc:${payload}`).digest('base64url');
  }
}
