import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type RequestListener, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterFile } from '../../support/after-file.js';

const TLS = join(__dirname, '../../support/tls');
const { redirectClouds } = createRequire(join(__dirname, 'clouds.ts'))('./cloud-hosts.cjs') as {
  redirectClouds: (to: Redirect) => () => void;
};

interface Redirect {
  http: number;
  https: number;
  ca: string;
}

/** A request to a host of a cloud. */
export interface Asked {
  host: string;
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export interface Answer {
  status?: number;
  /** An object is sent as JSON. */
  body?: unknown;
  headers?: Record<string, string>;
}

/** Null: no answer at all. */
export type Respond = (asked: Asked) => Answer | null;

const running = new Set<Clouds>();
afterFile(async () => {
  await Promise.all([...running].map((clouds) => clouds.stop()));
});

/** Stand-ins for the hosts of clouds, by their own names over TLS, and for their metadata services. */
export class Clouds {
  readonly asked: Asked[] = [];
  /** Token requests that have no response yet, and the most there were at a time. */
  open = 0;
  most = 0;
  delayMs = 0;
  /** By host; what is not here gets an empty object. */
  readonly hosts = new Map<string, Respond>();

  private constructor(
    private readonly servers: readonly Server[],
    readonly redirect: Redirect,
    private readonly restore: () => void,
  ) {}

  static async start(): Promise<Clouds> {
    const cert = {
      cert: readFileSync(join(TLS, 'clouds.pem')),
      key: readFileSync(join(TLS, 'clouds-key.pem')),
    };
    const servers = [createServer(), createSecureServer(cert)];
    for (const server of servers) await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
    const [http, https] = servers.map((server) => (server.address() as AddressInfo).port);
    const redirect = { http: http!, https: https!, ca: join(TLS, 'clouds-ca.pem') };
    const clouds = new Clouds(servers, redirect, redirectClouds(redirect));
    for (const server of servers) server.on('request', clouds.listener);
    running.add(clouds);
    return clouds;
  }

  /** Requests to this host. */
  at(host: string): Asked[] {
    return this.asked.filter((one) => one.host === host);
  }

  async stop(): Promise<void> {
    running.delete(this);
    this.restore();
    for (const server of this.servers) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  }

  private readonly listener: RequestListener = (req, res) => {
    const chunks: Buffer[] = [];
    this.most = Math.max(this.most, ++this.open);
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      const host = req.headers.host!;
      const { method = '', url: path = '', headers } = req;
      const asked = { host, method, path, headers, body: Buffer.concat(chunks).toString() };
      this.asked.push(asked);
      setTimeout(() => {
        this.open--;
        const respond: Respond = this.hosts.get(host) ?? (() => ({}));
        const answer = respond(asked);
        if (answer === null) return;
        const { status = 200, body = {}, headers: more = {} } = answer;
        res.writeHead(status, { 'content-type': 'application/json', ...more });
        res.end(typeof body === 'string' ? body : JSON.stringify(body));
      }, this.delayMs);
    });
  };
}

let tokens = 0;
/** A text with the form of a JWT. */
export const jwt = (subject: string) =>
  [
    { alg: 'RS256', kid: 'k' },
    { sub: subject, jti: ++tokens },
  ]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .concat('c2lnbmF0dXJl')
    .join('.');

export const formOf = ({ body }: Asked) => Object.fromEntries(new URLSearchParams(body));
export const jsonOf = ({ body }: Asked) => JSON.parse(body) as Record<string, unknown>;
export const bearer = (token: string, seconds: unknown = 3_600): Answer => ({
  body: { access_token: token, token_type: 'Bearer', expires_in: seconds },
});

/** What STS responds to AssumeRoleWithWebIdentity (AWS STS API Reference, "Sample Response"). */
export const assumed = (keys: { id: string; secret: string; token: string; expiration: string }): Answer => ({
  headers: { 'content-type': 'text/xml' },
  body: `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <AssumeRoleWithWebIdentityResult>
    <SubjectFromWebIdentityToken>system:serviceaccount:ai:postern</SubjectFromWebIdentityToken>
    <Audience>sts.amazonaws.com</Audience>
    <AssumedRoleUser>
      <Arn>arn:aws:sts::123456789012:assumed-role/FederatedWebIdentityRole/app1</Arn>
      <AssumedRoleId>AROACLKWSDQRAOEXAMPLE:app1</AssumedRoleId>
    </AssumedRoleUser>
    <Credentials>
      <SessionToken>${keys.token}</SessionToken>
      <SecretAccessKey>${keys.secret}</SecretAccessKey>
      <Expiration>${keys.expiration}</Expiration>
      <AccessKeyId>${keys.id}</AccessKeyId>
    </Credentials>
    <Provider>https://oidc.eks.eu-central-1.amazonaws.com/id/EXAMPLE</Provider>
  </AssumeRoleWithWebIdentityResult>
  <ResponseMetadata><RequestId>ad4156e9-bce1-11e2-82e6-6b6efEXAMPLE</RequestId></ResponseMetadata>
</AssumeRoleWithWebIdentityResponse>`,
});
