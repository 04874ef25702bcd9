// A server and a client of gRPC for tests of proxies: grpc-go's own test service, with all four
// kinds of calls. It tells by reflection what it serves.
//
//	grpc server ADDRESS
//	grpc client [-ca CA.pem] [-bytes N] ADDRESS
//
// The client makes each kind of call, with streams of both directions, errors, deadlines and
// cancellations, over TLS when an authority is given. It prints a line for each, and fails at the
// first that is not as it must be. Messages of calls side by side have N bytes.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	pb "google.golang.org/grpc/interop/grpc_testing"
)

const (
	callSecondsMax = 30
	large          = 300_000
	messages       = 50
	streams        = 32
)

// What is sent, and comes back, as metadata.
const (
	inHead    = "x-in-head"
	inTrailer = "x-in-trailer"
)

func main() {
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "server":
		err = serve(os.Args[2])
	case len(os.Args) >= 3 && os.Args[1] == "client":
		flags := flag.NewFlagSet("client", flag.ExitOnError)
		authority := flags.String("ca", "", "TLS, with a certificate that this authority signed")
		bytes := flags.Int("bytes", large, "the size of messages of calls side by side; with 0 there are none")
		_ = flags.Parse(os.Args[2:])
		err = call(flags.Arg(0), *authority, int32(*bytes))
	default:
		err = errors.New("usage: grpc server ADDRESS | grpc client [-ca CA.pem] [-bytes N] ADDRESS")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "grpc:", err)
		os.Exit(1)
	}
}

type service struct {
	pb.UnimplementedTestServiceServer
}

func serve(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	pb.RegisterTestServiceServer(server, service{})
	reflection.Register(server)
	return server.Serve(listener)
}

func payload(size int32) *pb.Payload {
	return &pb.Payload{Body: make([]byte, size)}
}

// echo sends the caller's metadata back, in the head and in the trailers.
func echo(ctx context.Context, head, trailer func(metadata.MD)) {
	in, _ := metadata.FromIncomingContext(ctx)
	if value := in.Get(inHead); len(value) > 0 {
		head(metadata.Pairs(inHead, value[0]))
		trailer(metadata.Pairs(inTrailer, value[0]))
	}
}

func asked(code *pb.EchoStatus) error {
	if code.GetCode() == 0 {
		return nil
	}
	return status.Error(codes.Code(code.GetCode()), code.GetMessage())
}

func (service) EmptyCall(context.Context, *pb.Empty) (*pb.Empty, error) {
	return &pb.Empty{}, nil
}

func (service) UnaryCall(ctx context.Context, in *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	echo(ctx,
		func(md metadata.MD) { _ = grpc.SetHeader(ctx, md) },
		func(md metadata.MD) { _ = grpc.SetTrailer(ctx, md) })
	if err := asked(in.GetResponseStatus()); err != nil {
		return nil, err
	}
	return &pb.SimpleResponse{Payload: payload(in.GetResponseSize())}, nil
}

func (service) StreamingOutputCall(in *pb.StreamingOutputCallRequest, out grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error {
	for _, one := range in.GetResponseParameters() {
		time.Sleep(time.Duration(one.GetIntervalUs()) * time.Microsecond)
		if err := out.Send(&pb.StreamingOutputCallResponse{Payload: payload(one.GetSize())}); err != nil {
			return err
		}
	}
	return asked(in.GetResponseStatus())
}

func (service) StreamingInputCall(in grpc.ClientStreamingServer[pb.StreamingInputCallRequest, pb.StreamingInputCallResponse]) error {
	var sum int
	for {
		one, err := in.Recv()
		if errors.Is(err, io.EOF) {
			return in.SendAndClose(&pb.StreamingInputCallResponse{AggregatedPayloadSize: int32(sum)})
		}
		if err != nil {
			return err
		}
		sum += len(one.GetPayload().GetBody())
	}
}

func (service) FullDuplexCall(both grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]) error {
	echo(both.Context(),
		func(md metadata.MD) { _ = both.SetHeader(md) },
		both.SetTrailer)
	for {
		one, err := both.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := asked(one.GetResponseStatus()); err != nil {
			return err
		}
		for _, wanted := range one.GetResponseParameters() {
			if err := both.Send(&pb.StreamingOutputCallResponse{Payload: payload(wanted.GetSize())}); err != nil {
				return err
			}
		}
	}
}

// security is TLS with this authority, or none.
func security(authority string) (credentials.TransportCredentials, error) {
	if authority == "" {
		return insecure.NewCredentials(), nil
	}
	pem, err := os.ReadFile(authority)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, errors.New("no authority in " + authority)
	}
	return credentials.NewTLS(&tls.Config{RootCAs: roots}), nil
}

// A kind of call, and what must come of it.
type kind func(context.Context, pb.TestServiceClient) error

func call(address, authority string, bytes int32) error {
	secured, err := security(authority)
	if err != nil {
		return err
	}
	connection, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(secured))
	if err != nil {
		return err
	}
	defer connection.Close()
	client := pb.NewTestServiceClient(connection)
	for _, one := range []struct {
		name string
		call kind
	}{
		{"unary, empty", empty},
		{"unary, large", unary(large)},
		{"client streaming", upload},
		{"server streaming", download},
		{"bidirectional streaming", pingPong},
		{"metadata in heads and trailers", metadataComesBack},
		{"status in trailers alone", statusIs},
		{"status after messages", statusAfterMessages},
		{"deadline", deadlinePasses},
		{"cancellation", cancelled},
		{"unimplemented", unimplemented},
		{"streams side by side", sideBySide(bytes)},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), callSecondsMax*time.Second)
		err := one.call(ctx, client)
		cancel()
		if err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		fmt.Println("ok:", one.name)
	}
	return nil
}

func empty(ctx context.Context, client pb.TestServiceClient) error {
	_, err := client.EmptyCall(ctx, &pb.Empty{}, grpc.WaitForReady(true))
	return err
}

func unary(size int32) kind {
	return func(ctx context.Context, client pb.TestServiceClient) error {
		answer, err := client.UnaryCall(ctx, &pb.SimpleRequest{ResponseSize: size, Payload: payload(size)})
		if err != nil {
			return err
		}
		return same("bytes", len(answer.GetPayload().GetBody()), int(size))
	}
}

func upload(ctx context.Context, client pb.TestServiceClient) error {
	stream, err := client.StreamingInputCall(ctx)
	if err != nil {
		return err
	}
	sum := 0
	for n := range messages {
		size := n * 1000
		sum += size
		if err := stream.Send(&pb.StreamingInputCallRequest{Payload: payload(int32(size))}); err != nil {
			return err
		}
	}
	answer, err := stream.CloseAndRecv()
	if err != nil {
		return err
	}
	return same("bytes", int(answer.GetAggregatedPayloadSize()), sum)
}

func download(ctx context.Context, client pb.TestServiceClient) error {
	request := &pb.StreamingOutputCallRequest{}
	for n := range messages {
		request.ResponseParameters = append(request.ResponseParameters, &pb.ResponseParameters{Size: int32(n * 1000)})
	}
	stream, err := client.StreamingOutputCall(ctx, request)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return same("messages", n, messages)
		}
		if err != nil {
			return err
		}
		if err := same("bytes", len(answer.GetPayload().GetBody()), n*1000); err != nil {
			return err
		}
	}
}

// pingPong sends a message only after the answer to the one before: nothing may be held back.
func pingPong(ctx context.Context, client pb.TestServiceClient) error {
	stream, err := client.FullDuplexCall(ctx)
	if err != nil {
		return err
	}
	for n := range messages {
		size := int32(n * 700)
		wanted := []*pb.ResponseParameters{{Size: size}}
		if err := stream.Send(&pb.StreamingOutputCallRequest{ResponseParameters: wanted, Payload: payload(size)}); err != nil {
			return err
		}
		answer, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := same("bytes", len(answer.GetPayload().GetBody()), int(size)); err != nil {
			return err
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("after the last message: %v", err)
	}
	return nil
}

func metadataComesBack(ctx context.Context, client pb.TestServiceClient) error {
	value := strings.Repeat("v", 2000)
	ctx = metadata.AppendToOutgoingContext(ctx, inHead, value)
	var head, trailer metadata.MD
	if _, err := client.UnaryCall(ctx, &pb.SimpleRequest{}, grpc.Header(&head), grpc.Trailer(&trailer)); err != nil {
		return err
	}
	if got := strings.Join(head.Get(inHead), ","); got != value {
		return fmt.Errorf("in the head: %q", got)
	}
	if got := strings.Join(trailer.Get(inTrailer), ","); got != value {
		return fmt.Errorf("in the trailers: %q", got)
	}
	return nil
}

func statusIs(ctx context.Context, client pb.TestServiceClient) error {
	text := "\t\nnot found: 100% ünïcode ☺\t\n"
	wanted := &pb.EchoStatus{Code: int32(codes.NotFound), Message: text}
	_, err := client.UnaryCall(ctx, &pb.SimpleRequest{ResponseStatus: wanted})
	if got := status.Convert(err); got.Code() != codes.NotFound || got.Message() != text {
		return fmt.Errorf("instead of NotFound: %w", err)
	}
	return nil
}

func statusAfterMessages(ctx context.Context, client pb.TestServiceClient) error {
	stream, err := client.StreamingOutputCall(ctx, &pb.StreamingOutputCallRequest{
		ResponseParameters: []*pb.ResponseParameters{{Size: 10}, {Size: 20}},
		ResponseStatus:     &pb.EchoStatus{Code: int32(codes.DataLoss), Message: "lost"},
	})
	if err != nil {
		return err
	}
	for range 2 {
		if _, err := stream.Recv(); err != nil {
			return err
		}
	}
	_, err = stream.Recv()
	return hasCode(err, codes.DataLoss)
}

// The server knows the deadline, too, and may be the first to end the call. Without a head the client
// would take that for a call that was not processed (REFUSED_STREAM, as behind HAProxy): so there is one.
func deadlinePasses(ctx context.Context, client pb.TestServiceClient) error {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	stream, err := client.FullDuplexCall(ctx)
	if err != nil {
		return err
	}
	wanted := []*pb.ResponseParameters{{Size: 1}}
	if err := stream.Send(&pb.StreamingOutputCallRequest{ResponseParameters: wanted}); err != nil {
		return err
	}
	if _, err := stream.Recv(); err != nil {
		return err
	}
	_, err = stream.Recv()
	return hasCode(err, codes.DeadlineExceeded)
}

func cancelled(ctx context.Context, client pb.TestServiceClient) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := client.FullDuplexCall(ctx)
	if err != nil {
		return err
	}
	wanted := []*pb.ResponseParameters{{Size: 1}}
	if err := stream.Send(&pb.StreamingOutputCallRequest{ResponseParameters: wanted}); err != nil {
		return err
	}
	if _, err := stream.Recv(); err != nil {
		return err
	}
	cancel()
	_, err = stream.Recv()
	return hasCode(err, codes.Canceled)
}

func unimplemented(ctx context.Context, client pb.TestServiceClient) error {
	_, err := client.UnimplementedCall(ctx, &pb.Empty{})
	return hasCode(err, codes.Unimplemented)
}

func sideBySide(size int32) kind {
	return func(ctx context.Context, client pb.TestServiceClient) error {
		if size == 0 {
			return nil
		}
		faults := make([]error, streams)
		var all sync.WaitGroup
		for n := range streams {
			all.Go(func() {
				for _, one := range []kind{upload, download, pingPong, unary(size)} {
					if err := one(ctx, client); err != nil {
						faults[n] = err
						return
					}
				}
			})
		}
		all.Wait()
		return errors.Join(faults...)
	}
}

func same(what string, got, wanted int) error {
	if got != wanted {
		return fmt.Errorf("%d %s instead of %d", got, what, wanted)
	}
	return nil
}

func hasCode(err error, wanted codes.Code) error {
	if got := status.Code(err); got != wanted {
		return fmt.Errorf("%s instead of %s: %w", got, wanted, err)
	}
	return nil
}
