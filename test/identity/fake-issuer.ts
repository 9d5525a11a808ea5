import { KeyObject, sign } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK } from 'jose';

type Answer = (req: IncomingMessage, res: ServerResponse) => void;

export interface SignOptions {
  header?: Record<string, unknown>;
  /** Signs with the key of another issuer. */
  key?: CryptoKey;
}

const nowS = () => Math.floor(Date.now() / 1000);

/** An issuer of identity tokens on loopback, with a discovery document and RSA keys. */
export class FakeIssuer {
  /** Paths that were asked for, in order. */
  readonly asked: string[] = [];
  /** Answers in place of the issuer. */
  instead: Answer | null = null;
  keys: JWK[] = [];

  private constructor(
    private readonly server: Server,
    readonly privateKey: CryptoKey,
    readonly publicJwk: JWK,
  ) {
    this.keys = [publicJwk];
  }

  static async start(kid = 'one'): Promise<FakeIssuer> {
    const { privateKey, publicKey } = await generateKeyPair('RS256', { extractable: true });
    const jwk = { ...(await exportJWK(publicKey)), kid, use: 'sig', alg: 'RS256' };
    const server = createServer((req, res) => issuer.answer(req, res));
    const issuer = new FakeIssuer(server, privateKey, jwk);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return issuer;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** A token of this issuer for a job, with these claims in place of the usual ones; undefined leaves one out. */
  async sign(claims: Record<string, unknown> = {}, { header = {}, key }: SignOptions = {}): Promise<string> {
    return new SignJWT(this.claimsWith(claims))
      .setProtectedHeader({ alg: 'RS256', kid: this.publicJwk.kid!, typ: 'JWT', ...header })
      .sign(key ?? this.privateKey);
  }

  claimsWith(claims: Record<string, unknown> = {}): Record<string, unknown> {
    const all = { iss: this.url, sub: 'job', aud: 'gateway', iat: nowS(), exp: nowS() + 300, ...claims };
    return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
  }

  /** A token of exactly these texts with a good RS256 signature, whatever the header says. */
  signTexts(header: string, payload: string): string {
    const signed = [header, payload].map((text) => Buffer.from(text).toString('base64url')).join('.');
    const signature = sign('sha256', Buffer.from(signed), KeyObject.from(this.privateKey));
    return `${signed}.${signature.toString('base64url')}`;
  }

  stop(): Promise<unknown> {
    this.server.closeAllConnections();
    return new Promise((resolve) => this.server.close(resolve));
  }

  private answer(req: IncomingMessage, res: ServerResponse): void {
    this.asked.push(req.url!);
    if (this.instead !== null) return this.instead(req, res);
    const body =
      req.url === '/keys' ? { keys: this.keys } : { issuer: this.url, jwks_uri: `${this.url}/keys` };
    res.setHeader('content-type', 'application/json').end(JSON.stringify(body));
  }
}
