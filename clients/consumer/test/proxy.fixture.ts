import net from 'node:net';

/**
 * A proxy to the broker whose connections can be closed, or frozen as if the host had disappeared. In the
 * latter case, new connections still work.
 */
export async function openProxy(brokers: string) {
  const [host = '', brokerPort] = brokers.split(',')[0]?.split(':') ?? [];
  const sockets = new Set<net.Socket>();
  const server = net.createServer((near) => {
    const far = net.connect(Number(brokerPort), host);
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.pipe(other);
      socket.on('error', () => undefined).on('close', () => other.destroy());
    }
  });
  const listen = (port: number) =>
    new Promise<void>((resolve) => {
      server.listen(port, '127.0.0.1', resolve);
    });
  await listen(0);
  const { port } = server.address() as net.AddressInfo;
  return {
    port,
    socketFactory: ({ onConnect }: { onConnect: () => void }) => net.connect(port, '127.0.0.1', onConnect),
    reopen: () => listen(port),
    close: () => {
      const closed = new Promise((resolve) => {
        server.close(resolve);
      });
      for (const socket of sockets) socket.destroy();
      return closed;
    },
    stall: () => {
      for (const socket of sockets) socket.unpipe().pause();
    },
  };
}
