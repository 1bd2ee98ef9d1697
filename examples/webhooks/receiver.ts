import { createServer } from 'node:http';
import { Webhook } from 'standardwebhooks'; // npm install standardwebhooks

const webhook = new Webhook(process.env['WEBHOOK_SECRET'] ?? '');
const seen = new Set<string>(); // in your database, in the transaction of the changes that the event causes

createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    try {
      // The signature covers the received bytes, so verify before parsing.
      const event = webhook.verify(Buffer.concat(chunks), request.headers as Record<string, string>) as {
        id: string;
        type: string;
      };
      if (!seen.has(event.id)) console.log(event.type, event.id);
      seen.add(event.id);
      response.writeHead(204).end();
    } catch {
      response.writeHead(401).end();
    }
  });
}).listen(Number(process.env['PORT'] ?? 4000), '127.0.0.1');
