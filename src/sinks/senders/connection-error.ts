import { verdictOfError } from '../../providers/provider-probe.js';
import { ForbiddenAddress } from '../../proxy/upstream/upstream-connector.js';
import { SinkError } from './sink-sender.js';

const MESSAGES: Record<string, string> = {
  name_not_resolved: 'The host name of the URL does not resolve. Correct the URL or the DNS.',
  refused: 'Connection refused: nothing listens at this host and port. Start the server, or correct the URL.',
  unreachable: 'The server could not be reached. Check the URL, the network and any egress proxy.',
  timeout: 'The server did not respond in time. Check its load and its disk, and the network.',
  tls: 'The TLS handshake failed, or the certificate is not trusted. For a private CA, set NODE_EXTRA_CA_CERTS.',
  not_http: 'The server does not respond with HTTP. Check the scheme and port of the URL.',
};

/** The error of a connection in words, with the remedy. */
export function connectionError(error: unknown): SinkError {
  if (error instanceof SinkError) return error;
  if (error instanceof ForbiddenAddress || (error as Error | null)?.cause instanceof ForbiddenAddress) {
    return new SinkError(
      'The URL leads to an address that is not allowed: link-local, a cloud metadata service, a public address without encryption, or this gateway.',
    );
  }
  const { code } = verdictOfError(error);
  return new SinkError(MESSAGES[code] ?? MESSAGES.unreachable, { cause: error });
}
