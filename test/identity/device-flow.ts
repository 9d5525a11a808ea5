import { CLIENT_SECRET, OpenIdProvider } from '../admin/openid-provider.js';
import { type TestGateway } from '../support/gateway.js';
import { postForm } from './exchanges.js';

export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

/** What the provider says of its users, by their names. */
export const USERS: Record<string, Record<string, unknown>> = {
  jane: { groups: ['team-default'], email: 'jane@example.com', email_verified: true, name: 'Jane Doe' },
  // Of somebody who was given the address of another.
  heir: { groups: ['team-default'], email: 'jane@example.com', email_verified: true },
  unverified: { groups: ['team-default'], email: 'jane@example.com', email_verified: false },
  both: { groups: ['team-default', 'team-research'], email: 'bo@example.com', email_verified: true },
  ada: { groups: ['llm-admins'], email: 'ada@example.com', email_verified: true },
  boss: { groups: ['llm-admins', 'team-default'], email: 'boss@example.com', email_verified: true },
  stranger: { groups: ['team-nowhere'] },
};

/** Settings of a gateway at which people sign in. */
export function signInSettings(issuer: OpenIdProvider, publicUrl: string): Record<string, string> {
  return {
    PORT: new URL(publicUrl).port,
    PUBLIC_URL: publicUrl,
    OIDC_ISSUER: issuer.url,
    OIDC_CLIENT_ID: 'postern',
    OIDC_CLIENT_SECRET: CLIENT_SECRET,
    OIDC_ADMINS: 'llm-admins',
    OIDC_TEAM_PREFIX: 'team-',
    SIGN_IN: 'on',
    // So that each client of a test has an address of its own.
    TRUSTED_PROXIES: '127.0.0.0/8',
  };
}

export interface Started {
  device_code: string;
  user_code: string;
  verification_uri: string;
  expires_in: number;
  interval: number;
}

type Where = Pick<TestGateway, 'url'>;

let clients = 0;

/** An address that no other client has. */
export function nextAddress(): string {
  clients++;
  return `10.1.${clients >> 8}.${clients & 255}`;
}

/** A client begins. @param base of the client, such as /p/default */
export async function startDevice(
  { url }: Where,
  base = '',
  headers: Record<string, string> = {},
  surface = 'claude_code',
) {
  const response = await fetch(`${url}${base}/oauth/device_authorization`, {
    method: 'POST',
    headers: { 'user-agent': 'claude-code/2.1.330', 'x-forwarded-for': nextAddress(), ...headers },
    body: new URLSearchParams({ surface }),
  });
  return { status: response.status, body: (await response.json()) as Started, headers: response.headers };
}

export interface Polled {
  status: number;
  error?: string;
  error_description?: string;
  access_token?: string;
  refresh_token?: string;
  expires_in?: number;
  email?: string;
}

async function grant({ url }: Where, parameters: Record<string, string>): Promise<Polled> {
  const { status, text } = await postForm(`${url}/oauth/token`, parameters);
  return { status, ...(JSON.parse(text) as object) };
}

export function poll(postern: Where, deviceCode: string): Promise<Polled> {
  return grant(postern, { grant_type: DEVICE_GRANT, device_code: deviceCode });
}

export function renew(postern: Where, refreshToken: string): Promise<Polled> {
  return grant(postern, { grant_type: 'refresh_token', refresh_token: refreshToken });
}

/** A browser: its cookies by origin, and what it shows. It follows no page by itself. */
export class Browser {
  private readonly jars = new Map<string, Map<string, string>>();

  constructor(readonly postern: Where) {}

  async get(target: string | URL, headers: Record<string, string> = {}): Promise<Page> {
    return this.send(new URL(target, this.postern.url), { headers });
  }

  async post(
    path: string,
    form: Record<string, string>,
    headers: Record<string, string> = { 'sec-fetch-site': 'same-origin' },
  ): Promise<Page> {
    const url = new URL(path, this.postern.url);
    return this.send(url, { method: 'POST', headers, body: new URLSearchParams(form) });
  }

  cookies(origin = this.postern.url): Map<string, string> {
    const known = this.jars.get(origin) ?? new Map<string, string>();
    this.jars.set(origin, known);
    return known;
  }

  private async send(url: URL, init: RequestInit): Promise<Page> {
    const jar = this.cookies(url.origin);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = { ...(init.headers as Record<string, string>), ...(cookie && { cookie }) };
    const response = await fetch(url, { redirect: 'manual', ...init, headers });
    for (const set of response.headers.getSetCookie()) {
      const [name = '', value = ''] = set.split(';')[0]!.split(/=(.*)/s);
      if (/Max-Age=0/.test(set)) jar.delete(name);
      else jar.set(name, value);
    }
    return { status: response.status, html: await response.text(), headers: response.headers, url };
  }

  /** What a person does at the provider. @returns the address of the callback */
  async atProvider(issuer: OpenIdProvider, location: string, as: string): Promise<URL> {
    issuer.user = as;
    this.cookies(issuer.url).clear();
    let url = new URL(location);
    for (let hops = 0; hops < 10; hops++) {
      if (url.pathname === '/admin/v1/oidc/callback') return url;
      const page = await this.get(url);
      const next = page.headers.get('location');
      if (next === null) throw new Error(`${page.status} ${page.html}`);
      url = new URL(next, url);
    }
    throw new Error('too many redirects');
  }

  /** From the code to the page that asks for a confirmation. */
  async identify(issuer: OpenIdProvider, userCode: string, as: string): Promise<Page> {
    const page = await this.post('/device', { user_code: userCode });
    if (page.status !== 200) return page;
    const callback = await this.atProvider(issuer, refreshOf(page), as);
    const back = await this.get(callback);
    return back.status === 200 ? this.get(refreshOf(back)) : back;
  }

  /** The whole flow of a person. @param team which of several */
  async signIn(issuer: OpenIdProvider, userCode: string, as: string, team?: string): Promise<Page> {
    const page = await this.identify(issuer, userCode, as);
    return page.status === 200 ? this.confirm(page, 'approve', team) : page;
  }

  confirm(page: Page, action: 'approve' | 'deny', team?: string): Promise<Page> {
    const token = /name="form_token" value="([^"]+)"/.exec(page.html)![1]!;
    const teams = [...page.html.matchAll(/name="team" value="([^"]+)"[^>]*>\s*([^<]*)/g)];
    const [, id] = teams.find(([, , name]) => team !== undefined && name!.trim() === team) ?? teams[0]!;
    return this.post('/device/confirm', { form_token: token, team: id!, action });
  }
}

export interface Page {
  status: number;
  html: string;
  headers: Headers;
  url: URL;
}

/** Without its style. */
export function textOf({ html }: Pick<Page, 'html'>): string {
  return html.slice(html.indexOf('<main>'));
}

/** Where a page continues by itself. */
export function refreshOf({ html, status }: Page): string {
  const found = /http-equiv="refresh" content="0; url=([^"]+)"/.exec(html);
  if (found === null) throw new Error(`${status} ${textOf({ html })}`);
  return found[1]!.replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)));
}

/** A person signs in from a client. @returns its tokens */
export async function signedIn(
  postern: Where,
  issuer: OpenIdProvider,
  as = 'jane',
  team?: string,
): Promise<{ access: string; refresh: string; device: string; expiresIn: number; email?: string }> {
  const { body } = await startDevice(postern);
  const page = await new Browser(postern).signIn(issuer, body.user_code, as, team);
  if (page.status !== 200) throw new Error(`${page.status} ${textOf(page)}`);
  const polled = await poll(postern, body.device_code);
  if (polled.status !== 200) throw new Error(JSON.stringify(polled));
  const { access_token: access, refresh_token: refresh, expires_in: expiresIn, email } = polled;
  return {
    access: access!,
    refresh: refresh!,
    device: body.device_code,
    expiresIn: expiresIn!,
    ...(email !== undefined && { email }),
  };
}
