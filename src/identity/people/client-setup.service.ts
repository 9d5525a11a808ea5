import { connect } from 'node:tls';
import { Injectable } from '@nestjs/common';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import type { ClientSetup } from './client-setup.schema.js';
import { patience } from '../../platform/patience.js';

const TIMEOUT = patience("the gateway's certificate", 5_000);

/** What administrators of computers need, so that people sign in from clients there. */
@Injectable()
export class ClientSetupService {
  /** While the certificate is being read, everybody waits for it: members could open any number of connections otherwise. */
  private reading: Promise<Certificate> | null = null;

  constructor(@InjectSettings() private readonly env: Settings) {}

  /** Connects to the address of the gateway to read its certificate, which a proxy in front of it may have. */
  async get(): Promise<ClientSetup> {
    const { signIn, gatewayUrl, publicUrl } = this.env;
    const address = gatewayUrl ?? publicUrl ?? null;
    const known = { enabled: signIn === 'on', gateway_url: address };
    if (address === null || !address.startsWith('https:'))
      return { ...known, certificate_sha256: null, certificate_error: null };
    this.reading ??= certificateOf(new URL(address)).finally(() => (this.reading = null));
    return { ...known, ...(await this.reading) };
  }
}

type Certificate = Pick<ClientSetup, 'certificate_sha256' | 'certificate_error'>;

/** A certificate that cannot be verified is none: it may be that of somebody in between. */
function certificateOf({ hostname, port }: URL): Promise<Certificate> {
  return new Promise((resolve) => {
    const host = hostname.replace(/^\[|\]$/g, '');
    const socket = connect({ host, port: Number(port || 443), ...(isName(host) && { servername: host }) });
    const end = (certificate: Certificate) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(certificate);
    };
    const fail = (reason: string) => end({ certificate_sha256: null, certificate_error: reason });
    const timer = setTimeout(() => fail(`no response in ${TIMEOUT.ms / 1_000} seconds`), TIMEOUT.ms);
    socket.once('secureConnect', () => {
      const fingerprint = socket.getPeerX509Certificate()?.fingerprint256;
      if (fingerprint === undefined) fail('the server has sent no certificate');
      else end({ certificate_sha256: fingerprint, certificate_error: null });
    });
    socket.once('error', (error: Error) => fail(error.message));
  });
}

/** RFC 6066 3: an address is no server name. */
function isName(host: string): boolean {
  return !host.includes(':') && !/^[\d.]+$/.test(host);
}
