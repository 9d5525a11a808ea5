import { hostProblem } from '../platform/provider-url.js';
import type { SinkKind } from './sink.entity.js';

type Checked = { url: string; problem?: undefined } | { url?: undefined; problem: string };

/** Schemes of each kind, the encrypted one first, and an example. */
const SCHEMES: Record<SinkKind, readonly [secure: string, plain: string, example: string]> = {
  clickhouse: ['https', 'http', 'https://clickhouse.example.com:8443'],
  jetstream: ['tls', 'nats', 'tls://nats.example.com:4222'],
  http: ['https', 'http', 'https://rows.example.com/postern'],
};

/**
 * Checks the URL of a sink by the rules for providers: public addresses with encryption only, and no link-local or cloud
 * metadata addresses. The problem never contains the value, which may hold a credential.
 */
export function checkSinkUrl(kind: SinkKind, value: string): Checked {
  const [secure, plain, example] = SCHEMES[kind];
  if (!/^[\x21-\x7e]+$/.test(value) || value.includes('\\'))
    return { problem: 'must be a URL of visible ASCII characters without spaces or backslashes' };
  const scheme = /^([a-z]+):\/\/[^/?#]/i.exec(value)?.[1]?.toLowerCase();
  // The URL parser knows the host rules of http only.
  const asHttp = value.replace(/^[a-z]+/i, scheme === secure ? 'https' : 'http');
  if ((scheme !== secure && scheme !== plain) || !URL.canParse(asHttp)) {
    return {
      problem: `must be a well-formed URL that starts with ${secure}:// (or ${plain}:// for a local server), such as ${example}`,
    };
  }
  const url = new URL(asHttp);
  if (url.username !== '' || url.password !== '' || /^[^/]*\/\/[^/?#]*@/.test(value))
    return { problem: 'must not contain a user name or password; give them as the secret' };
  if (value.includes('#')) return { problem: 'must not contain a fragment' };
  if (url.port === '0') return { problem: 'must not name port 0' };
  if (kind !== 'http' && (url.pathname !== '/' || value.includes('?')))
    return { problem: `must be an origin without a path or a query, such as ${example}` };
  if (kind === 'jetstream' && url.port === '')
    return { problem: `must name the port of the server, such as ${example}` };
  const problem = hostProblem(url);
  if (problem !== null) return { problem };
  if (kind === 'http') return { url: url.href };
  return { url: `${scheme}://${url.host}` };
}

/** @returns what is wrong with the target of a sink of this kind; null: nothing */
export function targetProblem(kind: SinkKind, target: string | null): string | null {
  if (kind === 'http') return target === null ? null : 'must be left out for http: the URL says all';
  if (target === null) {
    return kind === 'clickhouse'
      ? 'must be the name of a table, such as postern.request_log'
      : 'must be a subject of a stream, such as postern.requests';
  }
  if (kind === 'clickhouse') {
    return /^[A-Za-z_]\w{0,99}(\.[A-Za-z_]\w{0,99})?$/.test(target)
      ? null
      : 'must be the name of a table, with its database or without, such as postern.request_log';
  }
  return /^[A-Za-z0-9_-]{1,100}(\.[A-Za-z0-9_-]{1,100}){0,15}$/.test(target) && !/^(\$|_INBOX)/.test(target)
    ? null
    : 'must be a subject of a stream without wildcards, such as postern.requests';
}
