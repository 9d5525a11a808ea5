import { hostProblem } from '../../platform/provider-url.js';

/** Azure signs tokens of every tenant under these; a token has the issuer of its own tenant. */
const ALL_TENANTS = /^https:\/\/login\.microsoftonline\.com\/(?:common|organizations|consumers)(?:\/|$)/;

/** What is wrong with the URL of an issuer or of its keys; null: nothing. The address of a name is checked when it is used. */
export function issuerProblem(text: string): string | null {
  if (!/^https?:\/\/[^/?#@\\]/.test(text) || !/^[\x21-\x7e]{1,1000}$/.test(text) || !URL.canParse(text))
    return 'must be a URL that begins with https://';
  const url = new URL(text);
  if (url.username !== '' || url.password !== '' || text.includes('@'))
    return 'must not contain a user name or password';
  if (text.includes('?') || text.includes('#') || text.includes('\\'))
    return 'must not contain a query or a fragment';
  if (ALL_TENANTS.test(text))
    return 'must name one tenant: https://login.microsoftonline.com/<tenant ID>/v2.0';
  return hostProblem(url);
}

/** Whether a provider may call itself `name` where it is configured as `issuer`: single sign-on lets the final slash of an origin differ. */
export function isSameIssuer(name: unknown, issuer: string): name is string {
  return typeof name === 'string' && URL.canParse(name) && new URL(name).href === new URL(issuer).href;
}
