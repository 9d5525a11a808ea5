// Leads connections of this process to the names and addresses of clouds to stand-ins on this machine. The gateway knows
// nothing of it. Also loaded by preloaded.mjs into a process under test, which has POSTERN_TEST_CLOUDS.
const { readFileSync } = require('node:fs');
const net = require('node:net');
const tls = require('node:tls');

const NAMES = /\.(openai|anthropic|amazonaws|googleapis|microsoftonline|azure)\.com$/;
const ADDRESSES = ['169.254.169.254', '169.254.170.2', '169.254.170.23', 'fd00:ec2::23'];

/**
 * @param {{ http: number, https: number, ca: string }} to ports, and the file with the authority of the certificate
 * @returns ends it
 */
function redirectClouds({ http, https, ca }) {
  const real = { net: net.connect, tls: tls.connect };
  const authority = readFileSync(ca);
  net.connect = (options, ...rest) =>
    real.net(
      ADDRESSES.includes(options.host)
        ? { ...options, host: '127.0.0.1', port: http, lookup: undefined }
        : options,
      ...rest,
    );
  tls.connect = (options, ...rest) =>
    real.tls(
      NAMES.test(options.host)
        ? { ...options, host: '127.0.0.1', port: https, lookup: undefined, ca: authority }
        : options,
      ...rest,
    );
  return () => {
    net.connect = real.net;
    tls.connect = real.tls;
  };
}

module.exports = { redirectClouds };
if (process.env.POSTERN_TEST_CLOUDS) redirectClouds(JSON.parse(process.env.POSTERN_TEST_CLOUDS));
