import { createHmac, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
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

const derive = promisify<string, string, number, Buffer>(scrypt);

/**
 * The cookie of a sign-in at an OpenID provider. `Lax`: browsers send it with the redirect from the provider, which they
 * do not with a `Strict` cookie. It is signed, so that nobody can plant one with a lifetime or a return path of their own.
 * Anybody can get one: with a key that is slow to derive, it is of little use to guess ADMIN_TOKEN with.
 */
export class FlowCookie {
  private readonly name: string;
  private readonly attributes: string;
  private key: Promise<Buffer> | null = null;

  constructor(
    publicUrl: string,
    private readonly secret: string,
  ) {
    const isSecure = publicUrl.startsWith('https:');
    this.name = isSecure ? '__Host-postern-oidc' : 'postern_oidc';
    this.attributes = `Path=/; HttpOnly;${isSecure ? ' Secure;' : ''} SameSite=Lax`;
  }

  /** The Set-Cookie value of a new sign-in. */
  async set(flow: Omit<Flow, 'ends'>): Promise<string> {
    const content = JSON.stringify({ ...flow, ends: Date.now() + LIFETIME_S * 1_000 } satisfies Flow);
    const payload = Buffer.from(content).toString('base64url');
    return `${this.name}=${payload}.${await this.sign(payload)}; Max-Age=${LIFETIME_S}; ${this.attributes}`;
  }

  /** The Set-Cookie value that removes it. */
  remove(): string {
    return `${this.name}=; Max-Age=0; ${this.attributes}`;
  }

  /** The sign-in that this browser began; null if there is none, several, one that has ended, or one not made here. */
  async of(req: Request): Promise<Flow | null> {
    const cookies = (req.headers.cookie ?? '').split(';').map((pair) => pair.trim());
    const found = cookies.filter((pair) => pair.startsWith(`${this.name}=`));
    if (found.length !== 1) return null;
    const [payload = '', signature = ''] = found[0]!.slice(this.name.length + 1).split('.');
    const expected = Buffer.from(await this.sign(payload));
    const given = Buffer.from(signature);
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return null;
    const flow = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Flow;
    return flow.ends > Date.now() ? flow : null;
  }

  private async sign(payload: string): Promise<string> {
    this.key ??= derive(this.secret, 'postern sign-in', 32).catch((error: unknown) => {
      this.key = null;
      throw error;
    });
    return createHmac('sha256', await this.key)
      .update(`oidc:${payload}`)
      .digest('base64url');
  }
}
