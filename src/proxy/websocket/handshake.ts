import type { IncomingHttpHeaders } from 'node:http';
import type { Request } from 'express';
import { overridesTarget, ruleAt } from '../../auth/endpoint-rule.js';
import { SUBPROTOCOL_KEY } from '../../auth/credential.js';
import { GatewayError } from '../../errors/gateway-error.js';
import { containsKeyFormat } from '../../platform/api-key.js';
import { firstHeader } from '../../platform/raw-headers.js';
import type { Provider } from '../../providers/provider.js';

/** The handshake of a WebSocket that its key may open. */
export interface Handshake {
  /** What its connection had brought by then. */
  readonly bytesRead: number;
  /** The rules for its key before it was admitted: see CallPolicy.rulesOf(). */
  readonly rules: readonly string[];
}

/** OpenAI's Realtime and Responses API, also with the prefix of Azure OpenAI; and the Responses API of ChatGPT. */
const ENDPOINTS = /^(?:\/openai)?\/v1\/(?:realtime|responses)$|^\/backend-api\/codex\/responses$/;

/** True also for a handshake whose `Upgrade` a proxy before this gateway has dropped, as nginx does by default. */
export function asksForWebSocket(headers: IncomingHttpHeaders): boolean {
  return headers['sec-websocket-key'] !== undefined || lists(headers.upgrade, 'websocket');
}

/**
 * Checks a handshake before it is forwarded.
 *
 * @param rules for the key
 * @throws GatewayError upgrade_required, invalid_request, endpoint_not_allowed
 */
export function checkHandshake(req: Request, provider: Provider, rules: readonly string[]): Handshake {
  const { target, caller, headers, rawHeaders } = req;
  if (!ENDPOINTS.test(target.endpoint) && !ENDPOINTS.test(provider.basePath + target.endpoint))
    throw new GatewayError('upgrade_required', {
      message: 'This endpoint takes no WebSockets here. Send plain HTTP requests.',
    });
  if (!lists(headers.upgrade, 'websocket') || !lists(headers.connection, 'upgrade'))
    throw new GatewayError('upgrade_required', {
      message:
        'The handshake of the WebSocket has no Upgrade or Connection: a proxy before this gateway drops it.',
    });
  const isHandshake =
    req.method === 'GET' &&
    req.httpVersionMinor === 1 &&
    headers['sec-websocket-key'] !== undefined &&
    headers['transfer-encoding'] === undefined &&
    Number(headers['content-length'] ?? 0) === 0;
  if (!isHandshake)
    throw new GatewayError('invalid_request', {
      message: 'The handshake of the WebSocket is not well-formed (RFC 6455 4.1).',
    });
  const query = target.upstreamPath.slice(target.endpoint.length);
  if (ruleAt(caller.grant, provider) !== 'all' && overridesTarget(rawHeaders, query))
    throw new GatewayError('endpoint_not_allowed');
  return { bytesRead: req.socket.bytesRead, rules };
}

/** True if a list has this item. The names of protocols are case-insensitive (RFC 9110 7.8, RFC 6455 4.2.1). */
function lists(header: string | undefined, token: string): boolean {
  if (header === undefined) return false;
  return header.split(',').some((item) => item.trim().toLowerCase() === token);
}

/**
 * The headers without a key among the subprotocols, where browsers have to send it: the provider's own credential replaces it.
 *
 * @param raw flat raw headers
 * @param forwardsCredentials a key of the caller's own stays, a gateway key does not
 */
export function withoutSubprotocolKey(
  raw: readonly string[],
  forwardsCredentials: boolean,
): readonly string[] {
  const out: string[] = [];
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!;
    const value = raw[i + 1]!;
    if (name.toLowerCase() !== 'sec-websocket-protocol' || !value.includes(SUBPROTOCOL_KEY)) {
      out.push(name, value);
      continue;
    }
    const isKey = (item: string) =>
      item.trim().startsWith(SUBPROTOCOL_KEY) && (!forwardsCredentials || containsKeyFormat(item));
    const others = value.split(',').filter((item) => !isKey(item));
    if (others.length > 0) out.push(name, others.join(',').trim());
  }
  return out;
}

/** True if a response with the status 101 opens a WebSocket and no other protocol. @param raw flat raw headers */
export function opensWebSocket(raw: readonly Buffer[]): boolean {
  const headers = raw.map((part) => part.toString('latin1'));
  return firstHeader(headers, 'upgrade')?.trim().toLowerCase() === 'websocket';
}

/** The head of the response that opens the WebSocket. @param headers flat raw headers for the client */
export function openingHead(headers: readonly string[]): string {
  let head = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n';
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return `${head}\r\n`;
}

/** True if the provider has agreed to compress messages (RFC 7692). @param headers flat raw headers of its response */
export function agreesToDeflate(headers: readonly string[]): boolean {
  const extensions = firstHeader(headers, 'sec-websocket-extensions') ?? '';
  return extensions
    .split(',')
    .some((item) => item.split(';')[0]!.trim().toLowerCase() === 'permessage-deflate');
}
