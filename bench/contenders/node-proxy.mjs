// Starts a proxy written in Node that gets the provider's URL as its argument and prints where it listens.

export async function startNodeProxy({ workplace, provider, node = process.execPath }, name, args) {
  const { pid, found, stop } = await workplace.start([node, ...args, `http://127.0.0.1:${provider.port}`], {
    cores: workplace.cores.gateway,
    ready: (printed) => /listening on (\d+)\n/.exec(printed),
    name,
  });
  return { name, port: Number(found[1]), pid, stop, headers: { Authorization: 'Bearer sk-client' } };
}
