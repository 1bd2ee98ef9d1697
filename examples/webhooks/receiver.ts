import { createServer } from 'node:http';
import { Webhook } from 'standardwebhooks'; // npm install standardwebhooks

const webhook = new Webhook(process.env['WEBHOOK_SECRET'] ?? '');
const seen = new Set<string>(); // in your database: with what the event changes, in one transaction

createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    try {
      // The body as it came: what was parsed and written again has another signature.
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
