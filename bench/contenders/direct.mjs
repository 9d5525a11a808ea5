// No gateway at all: what load and stand-in cost by themselves.

export async function startDirect({ provider }) {
  return { name: 'direct', port: provider.port, pid: null, headers: { Authorization: 'Bearer sk-provider' } };
}
