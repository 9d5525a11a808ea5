import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent, type AgentOptions } from 'node:https';
import type { Duplex } from 'node:stream';
import type { UpstreamConnector } from '../../proxy/upstream/upstream-connector.js';

const OPTIONS: AgentOptions = { keepAlive: true, maxSockets: 2 };

/** An agent of node:http that opens its connections as those to providers are opened. */
export function connectorAgent({ protocol, hostname, port }: URL, connect: UpstreamConnector): HttpAgent {
  const isSecure = protocol === 'https:';
  const agent = isSecure ? new HttpsAgent(OPTIONS) : new HttpAgent(OPTIONS);
  const target = {
    protocol,
    hostname: hostname.replace(/^\[|\]$/g, ''),
    port: port || (isSecure ? '443' : '80'),
  };
  agent.createConnection = (_, callback) => {
    connect(target, (error, socket) => {
      if (error === null) callback?.(null, socket);
      else callback?.(error, undefined as unknown as Duplex);
    });
    return undefined;
  };
  return agent;
}
