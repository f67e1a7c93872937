// All servers of a cluster in one binary, chosen by the name it is called by: linked once, with shared packages.
package main

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var commands = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kube-proxy":              proxy.NewProxyCommand,
	"kubelet":                 kubelet.NewKubeletCommand,
	"kube-scheduler": func() *cobra.Command {
		return scheduler.NewSchedulerCommand()
	},
}

func main() {
	rand.Seed(time.Now().UnixNano())
	name := filepath.Base(os.Args[0])
	newCommand, known := commands[name]
	if !known {
		fmt.Fprintf(os.Stderr, "%s is not a server of Kubernetes\n", name)
		os.Exit(2)
	}
	command := newCommand()
	// The kubelet parses its flags itself.
	if name == "kube-proxy" || name == "kube-scheduler" {
		pflag.CommandLine.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	}
	logs.InitLogs()
	defer logs.FlushLogs()
	if err := command.Execute(); err != nil {
		os.Exit(1)
	}
}
