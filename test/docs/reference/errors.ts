import { gatewayErrorResponse } from '../../../src/proxy/http/error-response.js';
import {
  GatewayError,
  GATEWAY_ERROR_CODES,
  type GatewayErrorCode,
  type GatewayErrorDefinition,
} from '../../../src/errors/gateway-error.js';
import * as ofPolicies from '../../../src/policies-by-url/decision/errors.js';
import { code } from './markdown.js';

/** Every error of the gateway, as it is sent, by its status. */
export function errorsReference(): string {
  const all = [...GATEWAY_ERROR_CODES, ...Object.values(ofPolicies)];
  const errors = all.map(describe).sort((a, b) => a.status - b.status);
  return errors.map(({ text }) => text).join('\n\n');
}

function describe(what: GatewayErrorCode | GatewayErrorDefinition): { status: number; text: string } {
  const name = typeof what === 'string' ? what : what.code;
  const openai = gatewayErrorResponse(new GatewayError(what), 'id', '/v1/chat/completions');
  const anthropic = gatewayErrorResponse(new GatewayError(what), 'id', '/v1/messages');
  const { error } = JSON.parse(openai.body.toString()) as { error: { type: string; message: string } };
  const other = JSON.parse(anthropic.body.toString()) as { error: { type: string } };
  const facts = [`${code('type')}: ${code(error.type)}`];
  if (other.error.type !== error.type) facts[0] += ` (Anthropic: ${code(other.error.type)})`;
  for (const header of ['retry-after', 'x-should-retry']) {
    const at = openai.headers.indexOf(header);
    if (at !== -1) facts.push(code(`${header}: ${openai.headers[at + 1]}`));
  }
  if (openai.closes) facts.push('closes the connection');
  return {
    status: openai.status,
    text: `### ${openai.status} ${code(name)}\n\n> ${error.message.replaceAll('<', '\\<')}\n\n${facts.join(' · ')}`,
  };
}
