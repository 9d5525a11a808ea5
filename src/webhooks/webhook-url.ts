import { hostProblem } from '../platform/provider-url.js';

type UrlResult = { url: string; problem?: undefined } | { url?: undefined; problem: string };

/**
 * Checks the URL of a webhook by the rules for providers: public addresses with https only, and no link-local or cloud
 * metadata addresses. It may have a query. The problem never contains the value, which may hold a credential.
 */
export function checkWebhookUrl(value: string): UrlResult {
  if (!/^[\x21-\x7e]+$/.test(value) || value.includes('\\'))
    return { problem: 'must be a URL of visible ASCII characters without spaces or backslashes' };
  if (!/^https?:\/\/[^/]/i.test(value) || !URL.canParse(value))
    return {
      problem: 'must be a well-formed URL that starts with https:// (or http:// for a local receiver)',
    };
  const parsed = new URL(value);
  if (parsed.username !== '' || parsed.password !== '' || /^[^/]*\/\/[^/?#]*@/.test(value))
    return { problem: 'must not contain a user name or password' };
  if (value.includes('#')) return { problem: 'must not contain a fragment' };
  if (parsed.port === '0') return { problem: 'must not name port 0' };
  const problem = hostProblem(parsed);
  return problem === null ? { url: parsed.href } : { problem };
}
